#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "pair/values.h"
#include "verify/arrivals.h"
#include "verify/context.h"
#include "verify/rig.h"
#include "verify/stamp.h"
#include "verify/step.h"
#include "verify/under_way.h"

namespace ringbolt::tools::verify {
namespace {

/// What the initiator has done in a round on one queue pair.
struct Written {
  uint64_t first = 0;       ///< sequence number of its first block
  uint64_t blocks = 0;      ///< of the round
  uint64_t immediates = 0;  ///< since the step began
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Written, first, blocks, immediates)
using Writes = std::vector<Written>;

/// Where a completion proves that the data is there, so much of a delay is a finding and not a difference.
constexpr uint64_t kLateNs = 1'000'000;
// As long as a stream over UC waits.
constexpr uint64_t kQuietWriteNs = 250'000'000;

/// Every fourth block, and the last of a round, is written with an immediate, if the device has such.
bool has_immediate(const Block& block, bool is_last) { return is_last || block.sequence % 4 == 3; }

/// The end that is written to: knows what its whole memory should hold after each round, and compares every byte.
/// Not thread-safe.
class WriteTarget {
 public:
  explicit WriteTarget(const Rig& rig)
      : context_(rig.context()),
        rig_(rig),
        proves_(rig.step().transport == pair::Transport::kRc),
        immediates_(rig.queue_pairs()) {
    for (uint32_t index = 0; index < rig.queue_pairs(); ++index) {
      const std::span<const std::byte> area = rig.area(index);
      shadows_.emplace_back(area.begin(), area.end());
    }
  }

  /// Takes what was written with an immediate, and what should not have come at all. True if there was something.
  bool poll() {
    std::array<ibv_wc, 16> completions;
    const size_t count = rig_.poll(rig_.receive_cq(), completions);
    for (size_t i = 0; i < count; ++i) {
      take(completions[i]);
    }
    return count != 0;
  }

  /// Takes all that has come until here: also what came after the end was told, as a WRITE that was done twice.
  /// Bounded, since taken receives are posted again.
  void drain() {
    uint64_t left = uint64_t{rig_.receives()} * rig_.queue_pairs() + 1;
    while (left-- != 0 && poll()) {
    }
  }

  /// After the initiator's completions of a round. Waits a moment where a completion proves nothing. Returns false if
  /// nothing of it has arrived.
  bool check_round(const Writes& round) {
    std::vector<std::vector<Block>> plan;
    before_ = shadows_;
    nowhere_ = 0;
    uint64_t blocks = 0;
    for (uint32_t index = 0; index < rig_.queue_pairs(); ++index) {
      plan.push_back(plan_of(index, round[index]));
      blocks += plan.back().size();
    }
    await_data(round);
    for (uint32_t index = 0; index < rig_.queue_pairs(); ++index) {
      if (!is_as_planned(index)) {
        explain(index, plan[index]);
        continue;
      }
      for (const Block& one : plan[index]) {
        count(one);
      }
    }
    for (uint32_t index = 0; index < rig_.queue_pairs(); ++index) {
      const uint64_t due = round[index].immediates;
      // Of WRITEs that go nowhere nothing comes at all, which is said already.
      if (immediates_[index] < due && context_.step.loss_ppm == 0 && nowhere_ == 0) {
        context_.tally.add(
            Kind::kLost,
            fmt::format("queue pair {}: expected {} WRITEs with immediate, found {}", index, due, immediates_[index]),
            due - immediates_[index]);
      }
      immediates_[index] = due;
    }
    all_ += blocks;
    context_.watch.moved();
    return !judge_nowhere(blocks);
  }

  /// At the end.
  Outcome judge() {
    const auto allowed = static_cast<uint64_t>(static_cast<double>(all_) * context_.step.loss_ppm / 1e6);
    if (outcome_.lost > allowed) {
      context_.tally.add(Kind::kLost,
                         fmt::format("{} of {} WRITEs never came whole ({} may)", outcome_.lost, all_, allowed),
                         outcome_.lost);
    }
    if (as_messages_ != 0) {
      context_.tally.note(Kind::kNowhere,
                          "{} WRITEs came as messages, in the receive queue, instead of in the target's memory",
                          as_messages_);
    }
    return outcome_;
  }

  std::string where() const { return fmt::format("{} blocks verified", outcome_.messages); }

 private:
  void take(const ibv_wc& one) {
    const auto index = static_cast<uint32_t>(one.wr_id >> 32U);
    const auto slot = static_cast<uint32_t>(one.wr_id);
    if (index >= immediates_.size() || slot >= rig_.receives()) {
      context_.tally.note(Kind::kUnasked, "a receive completed that was not posted (id {:#x})", one.wr_id);
      return;
    }
    if (one.status != IBV_WC_SUCCESS) {
      context_.peer.fail("{}: the receive of a WRITE with immediate ended with status {} ({})", rig_.name(index),
                         static_cast<int>(one.status), rig_.status_text(one.status));
    }
    const bool is_write = one.opcode == IBV_WC_RECV_RDMA_WITH_IMM;
    if (is_write && (one.wc_flags & IBV_WC_WITH_IMM) != 0) {
      const auto due = static_cast<uint32_t>(immediates_[index]);
      const uint32_t found = ntohl(one.imm_data);
      if (found != due) {
        context_.tally.note(found < due ? Kind::kDoubled : Kind::kOrder,
                            "queue pair {}: immediate data: expected {}, found {}", index, due, found);
      }
      immediates_[index] = uint64_t{found} + 1;
    } else {
      ++as_messages_;
    }
    if (const auto damage = rig_.find_outside(index, slot, is_write ? 0 : one.byte_len)) {
      context_.tally.note(Kind::kOutside,
                          "queue pair {}: a WRITE with immediate touched {} bytes of the receive, the first at offset "
                          "{}",
                          index, damage->bytes, damage->first);
    }
    rig_.prepare(index, slot);
    rig_.post_receive(index, slot);
  }

  /// The blocks of a round, which the shadow holds from here on.
  std::vector<Block> plan_of(uint32_t index, const Written& written) {
    // What the other end tells: Step::send_depth is no more than that.
    const auto most = static_cast<uint32_t>(std::min<uint64_t>(written.blocks, 65536));
    std::vector<Block> blocks = blocks_of(context_.step, index, written.first, most, area_bytes_of(context_.step));
    for (const Block& one : blocks) {
      write_message(std::span(shadows_[index]).subspan(Rig::kGuardBytes + one.offset, one.length), rig_.their_seed(),
                    rig_.stamp(index, one.sequence, one.length));
    }
    return blocks;
  }

  bool is_as_planned(uint32_t index) const {
    // The device writes behind the compiler's back: without this a loop of looks might load once.
    std::atomic_thread_fence(std::memory_order_acquire);
    const std::span<const std::byte> area = rig_.area(index);
    return std::memcmp(area.data(), shadows_[index].data(), area.size()) == 0;
  }

  /// Of how many queue pairs it is not.
  uint32_t count_wrong() const {
    uint32_t wrong = 0;
    for (uint32_t index = 0; index < rig_.queue_pairs(); ++index) {
      wrong += is_as_planned(index) ? 0U : 1U;
    }
    return wrong;
  }

  /// Until all immediates are there, and, where a completion proves nothing, all data; for a while at most.
  void await_data(const Writes& round) {
    const uint32_t wrong_at_once = proves_ ? count_wrong() : 0;
    const auto is_there = [&](uint32_t index) {
      return immediates_[index] >= round[index].immediates && (proves_ || is_as_planned(index));
    };
    for (const uint64_t begin = base::now_ns(); base::now_ns() - begin < kQuietWriteNs;) {
      (void)poll();
      bool has_all = true;
      for (uint32_t index = 0; index < rig_.queue_pairs(); ++index) {
        has_all &= is_there(index);
      }
      if (has_all) {
        break;
      }
      context_.watch.idle("WRITEs whose completions the other end has");
    }
    if (wrong_at_once == 0) {
      return;
    }
    const uint64_t begin = base::now_ns();
    while (count_wrong() != 0 && base::now_ns() - begin < kLateNs) {
    }
    if (count_wrong() == 0) {
      context_.tally.note(Kind::kLate,
                          "WRITEs of {} queue pair{} had completed before their data was in the target's memory",
                          wrong_at_once, wrong_at_once == 1 ? "" : "s");
    }
  }

  void count(const Block& one) {
    ++outcome_.messages;
    outcome_.bytes += one.length;
    context_.watch.count(1, one.length);
  }

  /// What is wrong with the memory of a queue pair; from here on it is as it should be.
  void explain(uint32_t index, const std::vector<Block>& blocks) {
    std::vector<std::byte>& shadow = shadows_[index];
    const std::span<std::byte> area = rig_.area(index);
    for (const Block& one : blocks) {
      const size_t at = Rig::kGuardBytes + one.offset;
      const std::span<std::byte> found = area.subspan(at, one.length);
      const auto wrong = message_difference(found, rig_.their_seed(), rig_.stamp(index, one.sequence, one.length));
      if (!wrong) {
        count(one);
        continue;
      }
      const std::string what =
          fmt::format("queue pair {}: WRITE {} of {} bytes to offset {}", index, one.sequence, one.length, one.offset);
      if (context_.step.loss_ppm != 0) {
        ++outcome_.lost;
      } else if (std::memcmp(found.data(), before_[index].data() + at, one.length) == 0) {
        ++nowhere_;
        nowhere_texts_.push_back(what + " completed at the initiator and the target's memory is as it was");
      } else {
        context_.tally.note(Kind::kDamaged, "{} is damaged, {}", what, text_of(*wrong));
      }
      std::memcpy(shadow.data() + at, found.data(), one.length);
    }
    const auto [mine, theirs] = std::mismatch(shadow.begin(), shadow.end(), area.begin());
    if (mine != shadow.end()) {
      const auto at = static_cast<int64_t>(mine - shadow.begin()) - static_cast<int64_t>(Rig::kGuardBytes);
      context_.tally.note(Kind::kOutside,
                          "queue pair {}: memory at offset {} of the target was written, outside of every WRITE: "
                          "expected 0x{:02x}, found 0x{:02x}",
                          index, at, std::to_integer<unsigned>(*mine), std::to_integer<unsigned>(*theirs));
    }
    std::copy(area.begin(), area.end(), shadow.begin());
  }

  /// True if that is the fate of all.
  bool judge_nowhere(uint64_t blocks) {
    const std::vector<std::string> texts = std::exchange(nowhere_texts_, {});
    if (nowhere_ == blocks && blocks != 0) {
      context_.tally.add(
          Kind::kNowhere,
          fmt::format(
              "target memory unchanged after WRITE: all {} WRITEs of a round completed at the initiator"
              "{}; cause: no remote address on the wire; fix: SEND only",
              blocks,
              std::exchange(as_messages_, 0) == 0 ? "" : ", and their bytes came as messages, into posted receives"),
          nowhere_);
      return true;
    }
    for (const std::string& text : texts) {
      context_.tally.add(Kind::kNowhere, text);
    }
    return false;
  }

  const Context& context_;
  const Rig& rig_;
  bool proves_;                                  // a completion at the initiator says that the data is here
  std::vector<std::vector<std::byte>> shadows_;  // what the areas should hold
  std::vector<std::vector<std::byte>> before_;   // what they held
  std::vector<uint64_t> immediates_;             // come, of each queue pair
  Outcome outcome_;
  uint64_t nowhere_ = 0;  // of the round
  std::vector<std::string> nowhere_texts_;
  uint64_t as_messages_ = 0;
  uint64_t all_ = 0;
};

bool is_refusal(int error) {
  // EOPNOTSUPP of macOS, whose numbers a Mac's device may return.
  constexpr int kDarwinNotSupported = 102;
  return error == EOPNOTSUPP || error == ENOSYS || error == kDarwinNotSupported || error == EINVAL;
}

/// The end that writes, round after round. Not thread-safe.
class Writer : public Initiator {
 public:
  explicit Writer(const Rig& rig) : Initiator(rig), round_(rig.queue_pairs()) {}

  Outcome run() {
    while (pace_.wants_more(round_[0].first) && write_round()) {
      pair::tell_value(context_.peer, "written", round_);
      const bool has_come = context_.peer.await("checked", "its look at its memory") != "nothing";
      if (context_.step.has_read_back && has_come) {
        read_back();
      }
      for (Written& one : round_) {
        one.first += std::exchange(one.blocks, 0);
      }
      outcome_.duration_ns = base::now_ns() - begin_ns_;
      if (!has_come) {
        break;  // and will not come any more
      }
    }
    context_.peer.tell("written", "end");
    context_.peer.await("checked", "its last look at its memory");
    return outcome_;
  }

 private:
  std::vector<Block> plan(uint32_t index) const {
    return blocks_of(context_.step, index, round_[index].first, rig_.sends(), area_bytes_of(context_.step));
  }
  uint64_t address_of(uint32_t index, const Block& block) const {
    return rig_.remote_area(index) + Rig::kGuardBytes + block.offset;
  }

  /// False if the device refuses it: then the outcome says so.
  bool write_round() {
    for (uint32_t index = 0; index < rig_.queue_pairs(); ++index) {
      const std::vector<Block> blocks = plan(index);
      for (const Block& one : blocks) {
        const std::span<std::byte> local = batch_.next_slot(index).first(one.length);
        write_message(local, rig_.seed(), rig_.stamp(index, one.sequence, one.length));
        if (!write(index, one, local, &one == &blocks.back())) {
          return false;
        }
        ++round_[index].blocks;
      }
    }
    batch_.await_all("completions of WRITEs", [](uint32_t) {});
    return true;
  }

  bool write(uint32_t index, const Block& block, std::span<std::byte> local, bool is_last) {
    while (true) {
      const bool is_immediate = has_immediates_ && has_immediate(block, is_last);
      ibv_send_wr request{};
      request.opcode = is_immediate ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
      request.imm_data = htonl(static_cast<uint32_t>(round_[index].immediates));
      request.wr.rdma.remote_addr = address_of(index, block);
      request.wr.rdma.rkey = rig_.remote_key();
      const int error = batch_.post(index, request, local);
      if (error == 0) {
        round_[index].immediates += is_immediate ? 1 : 0;
        return true;
      }
      if (is_immediate && is_refusal(error)) {
        has_immediates_ = false;
        context_.note(fmt::format("WRITE with immediate: the device refuses it ({})", base::reason_of(error)));
      } else if (batch_.posted(index) == 0 && is_refusal(error)) {
        outcome_.refusal = fmt::format("WRITE: {} refuses it ({}): use messages, and let the receiver place the data",
                                       context_.device.name(), base::reason_of(error));
        return false;
      } else if (batch_.under_way(index) == 0) {
        context_.peer.fail("{}: ibv_post_send of a WRITE of {} bytes: {}", rig_.name(index), block.length,
                           base::reason_of(error));
      } else {
        context_.watch.turn(batch_.reap([](uint32_t) {}), "room for another WRITE");
      }
    }
  }

  /// READs every block into a buffer that was prepared, and compares.
  void read_back() {
    for (uint32_t index = 0; index < rig_.queue_pairs(); ++index) {
      const std::vector<Block> blocks = plan(index);
      for (size_t at = 0; at < blocks.size(); ++at) {
        batch_.read(index, at, address_of(index, blocks[at]), blocks[at].length);
      }
    }
    batch_.await_all("completions of READs", [](uint32_t) {});
    for (uint32_t index = 0; index < rig_.queue_pairs(); ++index) {
      const std::vector<Block> blocks = plan(index);
      for (size_t at = 0; at < blocks.size(); ++at) {
        compare(index, at, blocks[at]);
      }
    }
  }

  void compare(uint32_t index, size_t at, const Block& block) {
    const auto wrong = message_difference(rig_.receive_slot(index, at).first(block.length), rig_.seed(),
                                          rig_.stamp(index, block.sequence, block.length));
    if (wrong) {
      context_.tally.note(Kind::kDamaged, "queue pair {}: READ of WRITE {} of {} bytes is damaged, {}", index,
                          block.sequence, block.length, text_of(*wrong));
    } else {
      ++outcome_.messages;
      outcome_.bytes += block.length;
    }
    batch_.judge_outside(index, at, block.length, "a READ");
  }

  Writes round_;  // of each queue pair
  bool has_immediates_ = true;
};

Outcome be_written(const Rig& rig) {
  const Context& context = rig.context();
  WriteTarget target(rig);
  const Part part(context.watch, title_of(context.step), [&] { return target.where(); });
  const auto check = [&](const std::string& text) {
    const auto round = pair::value_in<Writes>(text);
    if (!round || round->size() != rig.queue_pairs()) {
      context.peer.fail("what the other end tells of a round of WRITEs makes no sense");
    }
    context.peer.tell("checked", target.check_round(*round) ? "something" : "nothing");
  };
  serve(context.peer, context.watch, "written", "the next WRITEs", check, [&] { return target.poll(); });
  target.drain();
  const Outcome outcome = target.judge();
  context.peer.tell("checked", "");
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
