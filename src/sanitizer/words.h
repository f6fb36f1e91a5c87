#pragma once

#include <infiniband/verbs.h>

#include <string>
#include <string_view>

#include "sanitizer/request.h"

/// What findings say in more than one place. All pure.
namespace ringbolt::sanitizer {

/// "IBV_WR_SEND".
std::string_view name_of(ibv_wr_opcode opcode);
/// "IBV_WR_SEND of 64 bytes on queue pair 0x4001, wr_id 7".
std::string text_of(const Request& request);

}  // namespace ringbolt::sanitizer
