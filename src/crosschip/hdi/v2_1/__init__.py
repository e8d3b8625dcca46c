"""What NNRt's driver interface (HDI) 2.1 says in models beyond 1.0: newer nodes and attributes.

from crosschip.hdi.v2_1.nodes import V2_1
write_model(model, nodes=V2_1)
"""
