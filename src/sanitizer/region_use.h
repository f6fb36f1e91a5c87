#pragma once

#include <infiniband/verbs.h>

#include <string_view>
#include <vector>

#include "sanitizer/queues.h"
#include "sanitizer/regions.h"
#include "sanitizer/reports.h"
#include "sanitizer/request_table.h"

/// What becomes of requests under way when a region comes or goes. Under the lock of Shadow.
namespace ringbolt::sanitizer {

/// The region's memory is no more the device's: its requests get nothing any more, and theirs is as it was without us.
/// Those that the device may still execute are told of (InfiniBand Architecture Specification 1.4, 11.2.8.4: a region
/// that is deregistered must not be in use). `call`: ibv_dereg_mr or ibv_rereg_mr.
std::vector<Finding> forsake_requests(RequestTable& table, const Queues& queues, const ibv_mr& mr,
                                      std::string_view call, const base::CallSite& site);

/// Peers may write to the region from here on what is not ours to take back: no poison stays there.
void unpoison_exposed(RequestTable& table, const Region& region);

}  // namespace ringbolt::sanitizer
