// Hot path: complete() is called for every message.
#include "verify/under_way.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/error.h"

namespace ringbolt::tools::verify {

uint64_t UnderWay::complete(uint32_t id, Tally& tally) {
  // Fewer than 2^31 are under way, so the low half tells which it is, or was.
  const auto ahead = static_cast<int32_t>(id - static_cast<uint32_t>(completed_));
  const uint64_t number = completed_ + static_cast<uint64_t>(static_cast<int64_t>(ahead));
  if (number >= posted_) {  // also what would be before the first
    tally.note(Kind::kUnasked, "{}: a completion of no {} that was posted (id {:#x})", name_, kind_, id);
    return 0;
  }
  if (number < completed_ || early_.count(number) != 0) {
    tally.note(Kind::kUnasked, "{}: {} {} completed again", name_, kind_, number);
    return 0;
  }
  if (ahead > 0) {
    tally.note(Kind::kOrder, "{}: completions out of order: expected {} {}, found {}", name_, kind_, completed_,
               number);
    early_.insert(number);
    return 0;
  }
  const uint64_t before = completed_++;
  while (!early_.empty() && *early_.begin() == completed_) {
    early_.erase(early_.begin());
    ++completed_;
  }
  return completed_ - before;
}

Batch::Batch(const Rig& rig, const char* kind) : rig_(rig), kind_(kind) {
  for (uint32_t index = 0; index < rig.queue_pairs(); ++index) {
    lanes_.emplace_back(rig.name(index), kind);
  }
}

bool Batch::is_idle() const {
  return std::all_of(lanes_.begin(), lanes_.end(), [](const UnderWay& lane) { return lane.count() == 0; });
}

std::string Batch::where() const {
  std::string text;
  for (size_t index = 0; index < std::min<size_t>(lanes_.size(), 4); ++index) {
    text += fmt::format("{}queue pair {}: {} posted, {} completed", text.empty() ? "" : ", ", index,
                        lanes_[index].posted(), lanes_[index].completed());
  }
  return text;
}

int Batch::post(uint32_t queue_pair, ibv_send_wr& request, std::span<std::byte> local) {
  request.wr_id = uint64_t{queue_pair} << 32U | lanes_[queue_pair].next_id();
  const int error = rig_.post_send(queue_pair, request, local);
  if (error == 0) {
    lanes_[queue_pair].note_posted();
  }
  return error;
}

Batch::Over Batch::judge(const ibv_wc& completion) {
  const auto index = static_cast<uint32_t>(completion.wr_id >> 32U);
  if (index >= lanes_.size()) {
    rig_.context().tally.note(Kind::kUnasked, "{}: a completion of no {} that was posted", rig_.name(index), kind_);
    return {};
  }
  UnderWay& lane = lanes_[index];
  if (completion.status != IBV_WC_SUCCESS && !is_tolerant_) {
    rig_.context().peer.fail("{}: {} {} ended with status {} ({}); {}", rig_.name(index), kind_, lane.completed(),
                             static_cast<int>(completion.status), rig_.status_text(completion.status), where());
  }
  return {index, lane.complete(static_cast<uint32_t>(completion.wr_id), rig_.context().tally)};
}

void Batch::must_post(uint32_t queue_pair, ibv_send_wr& request, std::span<std::byte> local, const char* what) {
  if (const int error = post(queue_pair, request, local)) {
    rig_.context().peer.fail("{}: ibv_post_send of {} of {} bytes: {}", rig_.name(queue_pair), what, local.size(),
                             base::reason_of(error));
  }
}

void Batch::read(uint32_t queue_pair, uint64_t slot, uint64_t remote_address, uint64_t length) {
  rig_.prepare(queue_pair, slot);
  ibv_send_wr request{};
  request.opcode = IBV_WR_RDMA_READ;
  request.wr.rdma.remote_addr = remote_address;
  request.wr.rdma.rkey = rig_.remote_key();
  must_post(queue_pair, request, rig_.receive_slot(queue_pair, slot).first(length), "a READ");
}

std::vector<uint64_t> Batch::all_posted() const {
  std::vector<uint64_t> counts;
  std::ranges::transform(lanes_, std::back_inserter(counts), &UnderWay::posted);
  return counts;
}

void Batch::judge_outside(uint32_t queue_pair, uint64_t slot, uint64_t bytes, const char* what) const {
  if (const auto damage = rig_.find_outside(queue_pair, slot, bytes)) {
    rig_.context().tally.note(Kind::kOutside,
                              "queue pair {}: {} of {} bytes wrote {} bytes around its buffer, the first at offset {}",
                              queue_pair, what, bytes, damage->bytes, damage->first);
  }
}

}  // namespace ringbolt::tools::verify
