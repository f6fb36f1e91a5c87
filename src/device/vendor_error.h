#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace ringbolt::device {

/// The code that ConnectX adapters put into vendor_err beside `status`; 0 where they differ among themselves. Programs
/// print it, and people look for these numbers in each other's reports.
constexpr uint32_t vendor_error(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_LOC_PROT_ERR:
      return 0x51;
    case IBV_WC_RETRY_EXC_ERR:
      return 0x81;
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return 0x87;
    case IBV_WC_REM_ACCESS_ERR:
      return 0x88;
    case IBV_WC_REM_OP_ERR:
      return 0x89;
    case IBV_WC_REM_INV_REQ_ERR:
      return 0x8a;
    case IBV_WC_WR_FLUSH_ERR:
      return 0xf9;
    default:
      return 0;
  }
}

}  // namespace ringbolt::device
