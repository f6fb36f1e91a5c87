#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "verify/arrivals.h"
#include "verify/context.h"
#include "verify/rig.h"
#include "verify/stamp.h"
#include "verify/step.h"
#include "verify/under_way.h"

namespace ringbolt::tools::verify {
namespace {

/// The end that is written to: knows what its whole memory should hold after each round, and compares every byte.
/// Not thread-safe.
class WriteTarget {
 public:
  WriteTarget(const Context& context, const Rig& rig);

  /// Takes what was written with an immediate, and what should not have come at all. True if there was something.
  bool poll();
  /// After the initiator's completions of a round: `firsts`, `counts` of blocks, how many with immediate, of each queue
  /// pair. Waits a moment where a completion proves nothing. Returns false if nothing of it has arrived.
  bool check_round(const std::vector<uint64_t>& firsts, const std::vector<uint64_t>& counts,
                   const std::vector<uint64_t>& immediates);
  void judge_loss();

  uint64_t blocks() const { return blocks_; }
  uint64_t bytes() const { return bytes_; }
  uint64_t lost() const { return lost_; }
  std::string where() const;

 private:
  void await_immediates(const std::vector<uint64_t>& immediates);
  bool is_as_planned(uint32_t queue_pair) const;
  bool judge_nowhere(uint64_t blocks);
  void explain(uint32_t queue_pair, const std::vector<Block>& blocks);

  const Context& context_;
  const Rig& rig_;
  uint64_t area_bytes_;
  uint64_t seed_;
  std::vector<std::vector<std::byte>> shadows_;  // what the areas should hold
  std::vector<std::vector<std::byte>> before_;   // what they held
  std::vector<uint64_t> immediates_;             // come, of each queue pair
  uint64_t blocks_ = 0;
  uint64_t bytes_ = 0;
  uint64_t lost_ = 0;
  uint64_t nowhere_ = 0;  // of the round
  std::vector<std::string> nowhere_texts_;
  uint64_t as_messages_ = 0;
  uint64_t all_ = 0;
};

/// Where a completion proves that the data is there, so much of a delay is a finding and not a difference.
constexpr uint64_t kLateNs = 1'000'000;
constexpr uint64_t kQuietWriteNs = 250'000'000;

/// Every fourth block, and the last of a round, is written with an immediate, if the device has such.
bool has_immediate(const Block& block, bool is_last) { return is_last || block.sequence % 4 == 3; }

WriteTarget::WriteTarget(const Context& context, const Rig& rig)
    : context_(context),
      rig_(rig),
      area_bytes_(area_bytes_of(context.step)),
      seed_(seed_of(context.step, !context.is_client)),
      immediates_(rig.queue_pairs()) {
  for (uint32_t index = 0; index < rig.queue_pairs(); ++index) {
    const std::span<const std::byte> area = rig.area(index);
    shadows_.emplace_back(area.begin(), area.end());
  }
}

std::string WriteTarget::where() const { return fmt::format("{} blocks verified", blocks_); }

bool WriteTarget::poll() {
  std::array<ibv_wc, 16> completions;
  const size_t count = rig_.poll(rig_.receive_cq(), completions);
  for (size_t i = 0; i < count; ++i) {
    const ibv_wc& one = completions[i];
    const auto index = static_cast<uint32_t>(one.wr_id >> 32U);
    const auto slot = static_cast<uint32_t>(one.wr_id);
    if (index >= immediates_.size() || slot >= rig_.receives()) {
      context_.tally.add(Kind::kUnasked, fmt::format("a receive completed that was not posted (id {:#x})", one.wr_id));
      continue;
    }
    if (one.status != IBV_WC_SUCCESS) {
      context_.peer.fail(fmt::format("{}: the receive of a WRITE with immediate ended with status {} ({})",
                                     rig_.name(index), static_cast<int>(one.status), rig_.status_text(one.status)));
    }
    if (one.opcode == IBV_WC_RECV_RDMA_WITH_IMM && (one.wc_flags & IBV_WC_WITH_IMM) != 0) {
      const uint32_t due = static_cast<uint32_t>(immediates_[index]);
      const uint32_t found = ntohl(one.imm_data);
      if (found != due) {
        context_.tally.add(found < due ? Kind::kDoubled : Kind::kOrder,
                           fmt::format("queue pair {}: immediate data: expected {}, found {}", index, due, found));
      }
      immediates_[index] = uint64_t{found} + 1;
    } else {
      ++as_messages_;
    }
    if (const auto damage =
            rig_.find_outside(index, slot, one.opcode == IBV_WC_RECV_RDMA_WITH_IMM ? 0 : one.byte_len)) {
      context_.tally.add(
          Kind::kOutside,
          fmt::format("queue pair {}: a WRITE with immediate touched {} bytes of the receive, the first at "
                      "offset {}",
                      index, damage->bytes, damage->first));
    }
    rig_.prepare(index, slot);
    rig_.post_receive(index, slot);
  }
  return count != 0;
}

bool WriteTarget::is_as_planned(uint32_t queue_pair) const {
  std::atomic_thread_fence(std::memory_order_acquire);
  const std::span<const std::byte> area = rig_.area(queue_pair);
  return std::memcmp(area.data(), shadows_[queue_pair].data(), area.size()) == 0;
}

void WriteTarget::await_immediates(const std::vector<uint64_t>& immediates) {
  const bool proves = context_.step.transport == pair::Transport::kRc;
  const uint64_t begin = base::now_ns();
  while (base::now_ns() - begin < kQuietWriteNs) {
    (void)poll();
    bool has_all = true;
    for (uint32_t index = 0; index < rig_.queue_pairs(); ++index) {
      has_all &= immediates_[index] >= immediates[index] && (proves || is_as_planned(index));
    }
    if (has_all) {
      return;
    }
    (void)context_.watch.idle("WRITEs whose completions the other end has");
  }
}

bool WriteTarget::check_round(const std::vector<uint64_t>& firsts, const std::vector<uint64_t>& counts,
                              const std::vector<uint64_t>& immediates) {
  std::vector<std::vector<Block>> plan;
  before_ = shadows_;
  nowhere_ = 0;
  uint64_t blocks = 0;
  for (uint32_t index = 0; index < rig_.queue_pairs(); ++index) {
    const auto most = static_cast<uint32_t>(std::min<uint64_t>(counts[index], 65536));
    plan.push_back(blocks_of(context_.step, index, firsts[index], most, area_bytes_));
    for (const Block& one : plan.back()) {
      write_message(std::span(shadows_[index]).subspan(Rig::kGuardBytes + one.offset, one.length), seed_,
                    {rig_.epoch(), static_cast<uint8_t>(index), one.sequence, one.length});
    }
    blocks += plan.back().size();
  }
  const bool proves = context_.step.transport == pair::Transport::kRc;
  const auto count_wrong = [&] {
    uint32_t wrong = 0;
    for (uint32_t index = 0; index < rig_.queue_pairs(); ++index) {
      wrong += is_as_planned(index) ? 0U : 1U;
    }
    return wrong;
  };
  const uint32_t wrong_at_once = proves ? count_wrong() : 0;
  await_immediates(immediates);
  if (wrong_at_once != 0) {
    const uint64_t begin = base::now_ns();
    while (count_wrong() != 0 && base::now_ns() - begin < kLateNs) {
    }
    if (count_wrong() == 0) {
      context_.tally.add(Kind::kLate,
                         fmt::format("WRITEs of {} queue pair{} had completed before their data was in the "
                                     "target's memory",
                                     wrong_at_once, wrong_at_once == 1 ? "" : "s"));
    }
  }
  for (uint32_t index = 0; index < rig_.queue_pairs(); ++index) {
    if (is_as_planned(index)) {
      for (const Block& one : plan[index]) {
        bytes_ += one.length;
        context_.watch.progress().count(1, one.length);
      }
      blocks_ += plan[index].size();
    } else {
      explain(index, plan[index]);
    }
  }
  for (uint32_t index = 0; index < rig_.queue_pairs(); ++index) {
    // Of WRITEs that go nowhere nothing comes at all, which is said already.
    if (immediates_[index] < immediates[index] && context_.step.loss_ppm == 0 && nowhere_ == 0) {
      context_.tally.add(Kind::kLost,
                         fmt::format("queue pair {}: expected {} WRITEs with immediate, found {}", index,
                                     immediates[index], immediates_[index]),
                         immediates[index] - immediates_[index]);
    }
    immediates_[index] = immediates[index];
  }
  all_ += blocks;
  context_.watch.moved();
  return !judge_nowhere(blocks);
}

/// True if that is the fate of all.
bool WriteTarget::judge_nowhere(uint64_t blocks) {
  const std::vector<std::string> texts = std::exchange(nowhere_texts_, {});
  if (nowhere_ == blocks && blocks != 0) {
    context_.tally.add(
        Kind::kNowhere,
        fmt::format("target memory unchanged after WRITE: all {} WRITEs of a round completed at the initiator"
                    "{}; cause: no remote address on the wire; fix: SEND only",
                    blocks, as_messages_ == 0 ? "" : ", and their bytes came as messages, into posted receives"),
        nowhere_);
    as_messages_ = 0;
    return true;
  }
  for (const std::string& text : texts) {
    context_.tally.add(Kind::kNowhere, text);
  }
  return false;
}

void WriteTarget::explain(uint32_t queue_pair, const std::vector<Block>& blocks) {
  std::vector<std::byte>& shadow = shadows_[queue_pair];
  const std::span<std::byte> area = rig_.area(queue_pair);
  for (const Block& one : blocks) {
    const size_t at = Rig::kGuardBytes + one.offset;
    const std::span<std::byte> found = area.subspan(at, one.length);
    const auto wrong =
        message_difference(found, seed_, {rig_.epoch(), static_cast<uint8_t>(queue_pair), one.sequence, one.length});
    if (!wrong) {
      ++blocks_;
      bytes_ += one.length;
      continue;
    }
    const bool is_as_before = std::memcmp(found.data(), before_[queue_pair].data() + at, one.length) == 0;
    if (context_.step.loss_ppm != 0) {
      ++lost_;
    } else if (is_as_before) {
      ++nowhere_;
      nowhere_texts_.push_back(
          fmt::format("queue pair {}: WRITE {} of {} bytes to offset {} completed at the initiator and "
                      "the target's memory is as it was",
                      queue_pair, one.sequence, one.length, one.offset));
    } else {
      context_.tally.add(Kind::kDamaged,
                         fmt::format("queue pair {}: WRITE {} of {} bytes to offset {} is damaged, {}", queue_pair,
                                     one.sequence, one.length, one.offset, text_of(*wrong)));
    }
    std::memcpy(shadow.data() + at, found.data(), one.length);
  }
  const auto [mine, theirs] = std::mismatch(shadow.begin(), shadow.end(), area.begin());
  if (mine != shadow.end()) {
    const auto at = static_cast<int64_t>(mine - shadow.begin()) - static_cast<int64_t>(Rig::kGuardBytes);
    context_.tally.add(
        Kind::kOutside,
        fmt::format("queue pair {}: memory at offset {} of the target was written, outside of every WRITE: "
                    "expected 0x{:02x}, found 0x{:02x}",
                    queue_pair, at, std::to_integer<unsigned>(*mine), std::to_integer<unsigned>(*theirs)));
  }
  std::copy(area.begin(), area.end(), shadow.begin());
}

void WriteTarget::judge_loss() {
  const auto allowed = static_cast<uint64_t>(static_cast<double>(all_) * context_.step.loss_ppm / 1e6);
  if (lost_ > allowed) {
    context_.tally.add(Kind::kLost, fmt::format("{} of {} WRITEs never came whole ({} may)", lost_, all_, allowed),
                       lost_);
  }
  if (as_messages_ != 0) {
    context_.tally.add(Kind::kNowhere,
                       fmt::format("{} WRITEs came as messages, in the receive queue, instead of in the "
                                   "target's memory",
                                   as_messages_));
  }
}

bool is_refusal(int error) {
  constexpr int kDarwinNotSupported = 102;
  return error == EOPNOTSUPP || error == ENOSYS || error == kDarwinNotSupported || error == EINVAL;
}

/// The end that writes, round after round.
class Writer {
 public:
  Writer(const Context& context, const Rig& rig)
      : context_(context),
        rig_(rig),
        batch_(context, rig),
        pace_(context.step),
        area_bytes_(area_bytes_of(context.step)),
        seed_(seed_of(context.step, context.is_client)),
        firsts_(rig.queue_pairs()),
        immediates_(rig.queue_pairs()) {}

  std::string where() const { return batch_.where(); }

  Outcome run() {
    Outcome outcome;
    const uint64_t begin = base::now_ns();
    while (pace_.wants_more(firsts_[0])) {
      counts_.assign(rig_.queue_pairs(), 0);
      if (!write_round(outcome)) {
        break;
      }
      std::vector<uint64_t> told = firsts_;
      told.insert(told.end(), counts_.begin(), counts_.end());
      told.insert(told.end(), immediates_.begin(), immediates_.end());
      context_.peer.tell("written", told);
      const std::string verdict = context_.peer.await("checked", "its look at its memory");
      const bool has_come = verdict != "nothing";
      if (context_.step.has_read_back && has_come) {
        read_back(outcome);
      }
      for (size_t index = 0; index < firsts_.size(); ++index) {
        firsts_[index] += counts_[index];
      }
      outcome.duration_ns = base::now_ns() - begin;
      if (!has_come) {
        break;  // and will not come any more
      }
    }
    context_.peer.tell("written", "end");
    context_.peer.await("checked", "its last look at its memory");
    return outcome;
  }

 private:
  std::vector<Block> plan(uint32_t index) const {
    return blocks_of(context_.step, index, firsts_[index], rig_.sends(), area_bytes_);
  }

  bool write_round(Outcome& outcome) {
    for (uint32_t index = 0; index < rig_.queue_pairs(); ++index) {
      const std::vector<Block> blocks = plan(index);
      for (const Block& one : blocks) {
        const std::span<std::byte> local = batch_.next_slot(index).first(one.length);
        write_message(local, seed_, {rig_.epoch(), static_cast<uint8_t>(index), one.sequence, one.length});
        if (!write(index, one, local, &one == &blocks.back(), outcome)) {
          return false;
        }
        ++counts_[index];
      }
    }
    batch_.await_all("completions of WRITEs", [](uint32_t) {});
    return true;
  }

  bool write(uint32_t index, const Block& block, std::span<std::byte> local, bool is_last, Outcome& outcome) {
    while (true) {
      const bool is_immediate = has_immediates_ && has_immediate(block, is_last);
      ibv_send_wr request{};
      request.opcode = is_immediate ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
      request.imm_data = htonl(static_cast<uint32_t>(immediates_[index]));
      request.wr.rdma.remote_addr = rig_.remote_area(index) + Rig::kGuardBytes + block.offset;
      request.wr.rdma.rkey = rig_.remote_key();
      const int error = batch_.post(index, request, local);
      if (error == 0) {
        immediates_[index] += is_immediate ? 1 : 0;
        return true;
      }
      if (is_immediate && is_refusal(error)) {
        has_immediates_ = false;
        context_.notes.push_back(
            fmt::format("WRITE with immediate: the device refuses it ({})", base::reason_of(error)));
      } else if (batch_.posted(index) == 0 && is_refusal(error)) {
        outcome.refusal = fmt::format("WRITE: {} refuses it ({}): use messages, and let the receiver place the data",
                                      context_.device.name(), base::reason_of(error));
        return false;
      } else if (batch_.under_way(index) == 0) {
        context_.peer.fail(fmt::format("{}: ibv_post_send of a WRITE of {} bytes: {}", rig_.name(index), block.length,
                                       base::reason_of(error)));
      } else {
        context_.watch.turn(batch_.reap([](uint32_t) {}), "room for another WRITE");
      }
    }
  }

  /// READs every block into a buffer that was prepared, and compares.
  void read_back(Outcome& outcome) {
    for (uint32_t index = 0; index < rig_.queue_pairs(); ++index) {
      const std::vector<Block> blocks = plan(index);
      for (size_t at = 0; at < blocks.size(); ++at) {
        rig_.prepare(index, at);
        ibv_send_wr request{};
        request.opcode = IBV_WR_RDMA_READ;
        request.wr.rdma.remote_addr = rig_.remote_area(index) + Rig::kGuardBytes + blocks[at].offset;
        request.wr.rdma.rkey = rig_.remote_key();
        batch_.must_post(index, request, rig_.receive_slot(index, at).first(blocks[at].length), "a READ");
      }
    }
    batch_.await_all("completions of READs", [](uint32_t) {});
    for (uint32_t index = 0; index < rig_.queue_pairs(); ++index) {
      const std::vector<Block> blocks = plan(index);
      for (size_t at = 0; at < blocks.size(); ++at) {
        compare(index, at, blocks[at], outcome);
      }
    }
  }

  void compare(uint32_t index, size_t at, const Block& block, Outcome& outcome) {
    const auto wrong = message_difference(rig_.receive_slot(index, at).first(block.length), seed_,
                                          {rig_.epoch(), static_cast<uint8_t>(index), block.sequence, block.length});
    if (wrong) {
      context_.tally.add(Kind::kDamaged, fmt::format("queue pair {}: READ of WRITE {} of {} bytes is damaged, {}",
                                                     index, block.sequence, block.length, text_of(*wrong)));
    } else {
      ++outcome.messages;
      outcome.bytes += block.length;
    }
    batch_.judge_outside(index, at, block.length, fmt::format("a READ of {} bytes", block.length));
  }

  const Context& context_;
  const Rig& rig_;
  Batch batch_;
  Pace pace_;
  uint64_t area_bytes_;
  uint64_t seed_;
  std::vector<uint64_t> firsts_;
  std::vector<uint64_t> counts_;
  std::vector<uint64_t> immediates_;
  bool has_immediates_ = true;
};

Outcome be_written(const Context& context, const Rig& rig) {
  WriteTarget target(context, rig);
  const Part part(context.watch, title_of(context.step), [&] { return target.where(); });
  while (true) {
    if (target.poll()) {
      context.watch.moved();
      continue;
    }
    const auto text = context.peer.look("written", "WRITEs");
    if (!text) {
      (void)context.watch.idle("the next WRITEs");
      continue;
    }
    if (*text == "end") {
      break;
    }
    const uint32_t lanes = rig.queue_pairs();
    const std::vector<uint64_t> numbers = context.peer.numbers_in(*text, 3 * size_t{lanes});
    const auto third = [&](size_t index) {
      const auto begin = numbers.begin() + static_cast<ptrdiff_t>(index * lanes);
      return std::vector<uint64_t>(begin, begin + lanes);
    };
    const bool has_come = target.check_round(third(0), third(1), third(2));
    context.peer.tell("checked", has_come ? "something" : "nothing");
  }
  target.judge_loss();
  context.peer.tell("checked", "");
  Outcome outcome;
  outcome.messages = target.blocks();
  outcome.bytes = target.bytes();
  outcome.lost = target.lost();
  return outcome;
}

}  // namespace

Outcome run_write(const Context& context) {
  const Step& step = context.step;
  RigShape shape;
  shape.area_bytes = area_bytes_of(step);
  shape.access = IBV_ACCESS_REMOTE_WRITE | (step.has_read_back ? unsigned{IBV_ACCESS_REMOTE_READ} : 0U);
  // Of the target for immediates; of the initiator the buffers that READs fill.
  shape.receives = step.send_depth;
  return run_one_sided<Writer>(context, shape, be_written);
}

}  // namespace ringbolt::tools::verify
