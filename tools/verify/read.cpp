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

/// READs what the target has told to be there, a version of its memory in each round. Not thread-safe.
class Reader : public Initiator {
 public:
  explicit Reader(const Rig& rig) : Initiator(rig), counts_(rig.queue_pairs()) {}

  Outcome run() {
    while (true) {
      const std::vector<uint64_t> told = context_.peer.numbers_in(context_.peer.await("version", "its memory"), 2);
      version_ = told[0];
      check_counts(told[1]);
      if (!pace_.wants_more(batch_.posted(0))) {
        context_.peer.tell("read", "end");
        return outcome_;
      }
      // The target changes its memory only after "more", when none of this round's READs is under way.
      read_round();
      outcome_.duration_ns = base::now_ns() - begin_ns_;
      context_.peer.tell("read", "more");
    }
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
    // An area is larger than the largest message (area_bytes_of).
    const size_t room = content_of(rig_, index).size() - length;
    return {dice % (room + 1), length, false};
  }

  void read_round() {
    for (uint32_t index = 0; index < rig_.queue_pairs(); ++index) {
      for (uint32_t slot = 0; slot < rig_.sends(); ++slot) {
        const Piece piece = piece_of(index, slot);
        const size_t offset = piece.is_count ? kCountOffset : kContentOffset + piece.offset;
        batch_.read(index, slot, rig_.remote_area(index) + offset, piece.length);
      }
    }
    std::vector<uint32_t> done(rig_.queue_pairs());
    batch_.await_all("completions of READs", [&](uint32_t index) { compare(index, done[index]++); });
  }

  void compare(uint32_t index, uint32_t slot) {
    const Piece piece = piece_of(index, slot);
    std::atomic_thread_fence(std::memory_order_acquire);
    const std::span<const std::byte> found = rig_.receive_slot(index, slot).first(piece.length);
    batch_.judge_outside(index, slot, piece.length, "a READ");
    // What is judged from here on decides whether this one counts as verified.
    const uint64_t errors = context_.tally.total();
    if (piece.is_count) {
      compare_count(index, found);
    } else if (!is_filled(found, piece.offset, base_of(context_.step, index, version_))) {
      describe(index, piece, found);
    }
    if (context_.tally.total() == errors) {
      count(piece.length);
    }
  }

  void compare_count(uint32_t index, std::span<const std::byte> found) {
    uint64_t count = 0;
    std::memcpy(&count, found.data(), sizeof count);
    if (count < counts_[index] || count < floor_) {
      context_.tally.note(Kind::kBackwards, "queue pair {}: a READ saw the target's count at {} after {} had been seen",
                          index, count, std::max(counts_[index], floor_));
    }
    counts_[index] = std::max(counts_[index], count);
  }

  /// The target says how far it has counted: nobody can have seen more.
  void check_counts(uint64_t told) {
    for (size_t index = 0; index < counts_.size(); ++index) {
      if (counts_[index] > told) {
        context_.tally.note(Kind::kBackwards, "queue pair {}: a READ saw the target's count at {}, which is only at {}",
                            index, counts_[index], told);
        counts_[index] = told;
      }
    }
    floor_ = told;
  }

  void describe(uint32_t index, const Piece& piece, std::span<const std::byte> found) {
    const std::string what =
        fmt::format("queue pair {}: a READ of {} bytes at offset {}", index, piece.length, piece.offset);
    if (version_ > 1 && is_filled(found, piece.offset, base_of(context_.step, index, version_ - 1))) {
      context_.tally.note(Kind::kStale, "{} got what was there before: version {}, where {} had been written", what,
                          version_ - 1, version_);
    } else if (const auto wrong = difference(found, piece.offset, base_of(context_.step, index, version_))) {
      context_.tally.note(Kind::kDamaged, "{} is damaged, {}", what, text_of(*wrong));
    } else {
      context_.tally.note(Kind::kLate, "{} completed before its data was there", what);
    }
  }

  std::vector<uint64_t> counts_;  // the highest that was seen, of each queue pair
  uint64_t floor_ = 0;
  uint64_t version_ = 0;
};

Outcome be_read(const Rig& rig) {
  const Context& context = rig.context();
  uint64_t version = 0;
  uint64_t count = 0;
  const Part part(context.watch, title_of(context.step),
                  [&] { return fmt::format("version {} of the memory is there", version); });
  const auto write_counts = [&] {
    ++count;
    for (uint32_t index = 0; index < rig.queue_pairs(); ++index) {
      auto* const cell = reinterpret_cast<uint64_t*>(rig.area(index).data() + kCountOffset);
      // Aligned to a line, so a READ sees it whole where the device reads eight bytes at once.
      std::atomic_ref<uint64_t>(*cell).store(count, std::memory_order_release);
    }
  };
  const auto write_version = [&] {
    ++version;
    for (uint32_t index = 0; index < rig.queue_pairs(); ++index) {
      fill(content_of(rig, index), 0, base_of(context.step, index, version));
    }
    write_counts();
    std::atomic_thread_fence(std::memory_order_release);
    context.peer.tell("version", {version, count});
  };
  write_version();
  const auto next = [&](const std::string&) { write_version(); };
  serve(context.peer, context.watch, "read", "the end of READs", next, [&] {
    write_counts();
    rig.prod();
    return false;
  });
  return {};
}

}  // namespace

Outcome run_read(const Context& context) {
  RigShape shape;
  shape.area_bytes = area_bytes_of(context.step);
  shape.access = IBV_ACCESS_REMOTE_READ;
  return run_one_sided<Reader>(context, shape, be_read);
}

}  // namespace ringbolt::tools::verify
