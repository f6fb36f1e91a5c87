#include <algorithm>
#include <atomic>
#include <cstring>

#include <fmt/format.h>

#include "base/clock.h"
#include "verify/arrivals.h"
#include "verify/context.h"
#include "verify/step.h"
#include "verify/under_way.h"

namespace ringbolt::tools::verify {
namespace {

// The target fills each area anew for every version of it, and counts on in its first line all the while.
constexpr size_t kCountOffset = Rig::kGuardBytes;
constexpr size_t kContentOffset = 2 * Rig::kGuardBytes;
/// Every so many'th READ is of the count.
constexpr uint64_t kCountEvery = 4;

uint64_t base_of(const Step& step, uint32_t queue_pair, uint64_t version) {
  return mixed(mixed(step.seed ^ 0x72656164) + (version << 8U) + queue_pair);
}

std::span<std::byte> content_of(const Rig& rig, uint32_t queue_pair) {
  return rig.area(queue_pair).subspan(kContentOffset, rig.area(queue_pair).size() - kContentOffset);
}

class Reader {
 public:
  Reader(const Context& context, const Rig& rig)
      : context_(context), rig_(rig), batch_(context, rig), pace_(context.step), counts_(rig.queue_pairs()) {}

  std::string where() const { return batch_.where(); }

  Outcome run() {
    const uint64_t begin = base::now_ns();
    while (true) {
      const std::vector<uint64_t> told = context_.peer.numbers_in(context_.peer.await("version", "its memory"), 2);
      version_ = told[0];
      check_counts(told[1]);
      if (!pace_.wants_more(batch_.posted(0))) {
        break;
      }
      read_round();
      outcome_.duration_ns = base::now_ns() - begin;
      context_.peer.tell("read", "more");
    }
    context_.peer.tell("read", "end");
    return outcome_;
  }

 private:
  struct Piece {
    size_t offset;
    size_t length;
    bool is_count;
  };

  Piece piece_of(uint32_t index, uint32_t slot) const {
    const uint64_t dice = mixed(mixed(context_.step.seed + index) ^ (version_ << 20U) ^ slot);
    if (slot % kCountEvery == kCountEvery - 1) {
      return {0, sizeof(uint64_t), true};
    }
    const size_t length = std::max<size_t>(size_of(context_.step, index, version_ * rig_.sends() + slot), 1);
    const size_t room = content_of(rig_, index).size() - length;
    return {dice % (room + 1), length, false};
  }

  void read_round() {
    for (uint32_t index = 0; index < rig_.queue_pairs(); ++index) {
      for (uint32_t slot = 0; slot < rig_.sends(); ++slot) {
        const Piece piece = piece_of(index, slot);
        rig_.prepare(index, slot);
        ibv_send_wr request{};
        request.opcode = IBV_WR_RDMA_READ;
        request.wr.rdma.remote_addr =
            rig_.remote_area(index) + (piece.is_count ? kCountOffset : kContentOffset + piece.offset);
        request.wr.rdma.rkey = rig_.remote_key();
        batch_.must_post(index, request, rig_.receive_slot(index, slot).first(piece.length),
                         fmt::format("a READ of {} bytes", piece.length));
      }
    }
    std::vector<uint32_t> done(rig_.queue_pairs());
    batch_.await_all("completions of READs", [&](uint32_t index) { compare(index, done[index]++); });
  }

  void compare(uint32_t index, uint32_t slot) {
    const Piece piece = piece_of(index, slot);
    std::atomic_thread_fence(std::memory_order_acquire);
    const std::span<const std::byte> found = rig_.receive_slot(index, slot).first(piece.length);
    batch_.judge_outside(index, slot, piece.length, fmt::format("a READ of {} bytes", piece.length));
    const uint64_t errors = context_.tally.total();
    if (piece.is_count) {
      compare_count(index, found);
    } else if (!is_filled(found, piece.offset, base_of(context_.step, index, version_))) {
      describe(index, piece, found);
    }
    if (context_.tally.total() == errors) {
      ++outcome_.messages;
      outcome_.bytes += piece.length;
      context_.watch.progress().count(1, piece.length);
    }
  }

  void compare_count(uint32_t index, std::span<const std::byte> found) {
    uint64_t count = 0;
    std::memcpy(&count, found.data(), sizeof count);
    if (count < counts_[index] || count < floor_) {
      context_.tally.add(Kind::kBackwards,
                         fmt::format("queue pair {}: a READ saw the target's count at {} after {} had been "
                                     "seen",
                                     index, count, std::max(counts_[index], floor_)));
    }
    counts_[index] = std::max(counts_[index], count);
  }

  /// The target says how far it has counted: nobody can have seen more.
  void check_counts(uint64_t told) {
    for (size_t index = 0; index < counts_.size(); ++index) {
      if (counts_[index] > told) {
        context_.tally.add(Kind::kBackwards,
                           fmt::format("queue pair {}: a READ saw the target's count at {}, which is only "
                                       "at {}",
                                       index, counts_[index], told));
        counts_[index] = told;
      }
    }
    floor_ = told;
  }

  void describe(uint32_t index, const Piece& piece, std::span<const std::byte> found) {
    if (version_ > 1 && is_filled(found, piece.offset, base_of(context_.step, index, version_ - 1))) {
      context_.tally.add(Kind::kStale,
                         fmt::format("queue pair {}: a READ of {} bytes at offset {} got what was there before: "
                                     "version {}, where {} had been written",
                                     index, piece.length, piece.offset, version_ - 1, version_));
      return;
    }
    if (const auto wrong = difference(found, piece.offset, base_of(context_.step, index, version_))) {
      context_.tally.add(Kind::kDamaged, fmt::format("queue pair {}: a READ of {} bytes at offset {} is damaged, {}",
                                                     index, piece.length, piece.offset, text_of(*wrong)));
    } else {
      context_.tally.add(
          Kind::kLate,
          fmt::format("queue pair {}: a READ of {} bytes completed before its data was there", index, piece.length));
    }
  }

  const Context& context_;
  const Rig& rig_;
  Batch batch_;
  Pace pace_;
  std::vector<uint64_t> counts_;  // the highest that was seen, of each queue pair
  uint64_t floor_ = 0;
  uint64_t version_ = 0;
  Outcome outcome_;
};

Outcome be_read(const Context& context, const Rig& rig) {
  uint64_t version = 0;
  uint64_t count = 0;
  const Part part(context.watch, title_of(context.step),
                  [&] { return fmt::format("version {} of the memory is there", version); });
  const auto write_counts = [&] {
    ++count;
    for (uint32_t index = 0; index < rig.queue_pairs(); ++index) {
      auto* const cell = reinterpret_cast<uint64_t*>(rig.area(index).data() + kCountOffset);
      std::atomic_ref<uint64_t>(*cell).store(count, std::memory_order_release);
    }
  };
  while (true) {
    ++version;
    for (uint32_t index = 0; index < rig.queue_pairs(); ++index) {
      fill(content_of(rig, index), 0, base_of(context.step, index, version));
    }
    write_counts();
    std::atomic_thread_fence(std::memory_order_release);
    context.peer.tell("version", {version, count});
    std::optional<std::string> text;
    while (!(text = context.peer.look("read", "READs"))) {
      write_counts();
      ibv_wc completion;
      (void)rig.poll(rig.receive_cq(), {&completion, 1});  // some devices make progress only then
      (void)context.watch.idle("the end of READs");
    }
    context.watch.moved();
    if (*text == "end") {
      return {};
    }
  }
}

}  // namespace

Outcome run_read(const Context& context) {
  RigShape shape;
  shape.area_bytes = area_bytes_of(context.step);
  shape.access = IBV_ACCESS_REMOTE_READ;
  return run_one_sided<Reader>(context, shape, be_read);
}

}  // namespace ringbolt::tools::verify
