"""NNRt's driver interface (HDI) 1.0: its structures, and devices on both sides.

from crosschip.apis.nnrt.hdi.v1_0.chip import Chip        # a crosschip device as an `INnrtDevice`
from crosschip.apis.nnrt.hdi.v1_0.device import HdiDevice # an `INnrtDevice` as a crosschip device
"""
