#include "verify/batch.h"

#include <algorithm>

#include <fmt/format.h>

namespace ringbolt::tools::verify {

bool Batch::is_idle() const {
  return std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.posted == lane.completed; });
}

std::string Batch::where() const {
  std::string text;
  for (size_t index = 0; index < std::min<size_t>(lanes_.size(), 4); ++index) {
    text += fmt::format("{}queue pair {}: {} posted, {} completed", text.empty() ? "" : ", ", index,
                        lanes_[index].posted, lanes_[index].completed);
  }
  return text;
}

int Batch::post(uint32_t queue_pair, ibv_send_wr& request, std::span<std::byte> local) {
  request.wr_id = uint64_t{queue_pair} << 32U | (lanes_[queue_pair].posted & UINT32_MAX);
  const int error = rig_.post_send(queue_pair, request, local);
  lanes_[queue_pair].posted += error == 0 ? 1 : 0;
  return error;
}

uint32_t Batch::judge(const ibv_wc& completion) {
  const auto index = static_cast<uint32_t>(completion.wr_id >> 32U);
  if (index >= lanes_.size() || lanes_[index].completed == lanes_[index].posted) {
    context_.tally.add(Kind::kUnasked, fmt::format("{}: an operation completed that was not posted", rig_.name(index)));
    return kNone;
  }
  Lane& lane = lanes_[index];
  if (completion.status != IBV_WC_SUCCESS) {
    context_.peer.fail(fmt::format("{}: operation {} ended with status {} ({}); {}", rig_.name(index), lane.completed,
                                   static_cast<int>(completion.status), rig_.status_text(completion.status), where()));
  }
  if (static_cast<uint32_t>(completion.wr_id) != (lane.completed & UINT32_MAX)) {
    context_.tally.add(Kind::kOrder,
                       fmt::format("queue pair {}: completions out of order: expected operation {}, found {}", index,
                                   lane.completed & UINT32_MAX, static_cast<uint32_t>(completion.wr_id)));
  }
  ++lane.completed;
  return index;
}

}  // namespace ringbolt::tools::verify
