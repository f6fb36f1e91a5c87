#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "verify/arrivals.h"
#include "verify/batch.h"
#include "verify/pace.h"
#include "verify/stamp.h"
#include "verify/write_target.h"

namespace ringbolt::tools::verify {
namespace {

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
