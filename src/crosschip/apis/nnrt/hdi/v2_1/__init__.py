"""NNRt's driver interface (HDI) 2.0 and 2.1: what they add to 1.0.

from crosschip.apis.nnrt.hdi.v2_1.chip import Chip        # a crosschip device as an `INnrtDevice`
from crosschip.apis.nnrt.hdi.v2_1.device import HdiDevice # an `INnrtDevice` as a crosschip device
"""
