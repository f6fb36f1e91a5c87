#pragma once

#include <infiniband/verbs.h>

#include <string>
#include <string_view>

#include "sanitizer/model.h"
#include "sanitizer/reports.h"

/// What findings say in more than one place. All pure.
namespace ringbolt::sanitizer {

/// "IBV_WR_SEND".
std::string_view name_of(ibv_wr_opcode opcode);
/// "IBV_WR_SEND of 64 bytes on queue pair 0x4001, wr_id 7".
std::string text_of(const Request& request);
/// `seen`: where the request's end was polled, if that is when it is told.
Finding race_between_processes(const Request& request, const RaceTable::Entry& other, const Mention& seen);
Finding not_portable(std::string what, const std::string& why, std::string_view done, const base::CallSite& site);

}  // namespace ringbolt::sanitizer
