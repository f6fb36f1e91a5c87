// Exchanges with the rank whose number differs in one bit, for every bit. Ranks beyond the largest power of two give
// their input to one below it first, and get the result from it. Sources: Thakur, Rabenseifner and Gropp 2005,
// "Optimization of collective communication operations in MPICH"; Rabenseifner 2004 (halving).

#include <bit>
#include <utility>

#include "collective/assignment.h"

namespace ringbolt::collective {
namespace {

/// The ranks that exchange, and the one beyond them that this one adds up for.
/// `assignment` must stay until build() has returned.
class Exchange {
 public:
  Exchange(const Assignment& assignment, uint32_t n_levels)
      : assignment_(assignment),
        rank_(assignment.rank),
        n_exchanging_(std::bit_floor(assignment.n_ranks())),
        whole_{0, total_bytes(assignment.problem)},
        chunk_bytes_(assignment.chunk_bytes(n_levels, whole_.bytes)) {}

  bool is_extra() const { return rank_ >= n_exchanging_; }
  bool has_extra() const { return !is_extra() && rank_ + n_exchanging_ < assignment_.n_ranks(); }

 protected:
  Step step(const Piece& piece) const { return Assignment::step(piece, chunk_bytes_); }

  void lend_input() {
    Step give = step(whole_);
    give.sources = {from_local(Buffer::input, 0)};
    give.targets = {assignment_.send_to(rank_ - n_exchanging_, 0)};
    add_step(program_, std::move(give));
  }

  void get_result(const Piece& piece, uint32_t transfer) {
    Step get = step(piece);
    get.sources = {from_transfer(rank_ - n_exchanging_, transfer)};
    get.targets = {to_local(Buffer::output, piece.offset)};
    add_step(program_, std::move(get));
  }

  const Assignment& assignment_;
  const uint32_t rank_;
  const uint32_t n_exchanging_;
  const Piece whole_;
  const uint32_t chunk_bytes_;
  Program program_;
};

class Doubling : Exchange {
 public:
  explicit Doubling(const Assignment& assignment) : Exchange(assignment, assignment.topology.diameter()) {}

  Program build() {
    if (is_extra()) {
      lend_input();
      get_result(whole_, 0);
      return std::move(program_);
    }
    Step next = step(whole_);
    next.sources = {from_local(Buffer::input, 0)};
    if (has_extra()) {
      next.sources.push_back(from_transfer(rank_ + n_exchanging_, 0));
      next.targets.push_back(to_local(Buffer::output, 0));
    }
    for (uint32_t bit = 1; bit < n_exchanging_; bit *= 2) {
      const uint32_t partner = rank_ ^ bit;
      next.targets.push_back(assignment_.send_to(partner, 0));
      const uint32_t last = add_step(program_, std::move(next));
      const bool is_in_output = bit > 1 || has_extra();
      next = step(whole_);
      next.sources = {from_local(is_in_output ? Buffer::output : Buffer::input, 0, last)};
      // Both add the lower rank's first, so both get the same bits.
      next.sources.insert(partner < rank_ ? next.sources.begin() : next.sources.end(), from_transfer(partner, 0));
      next.targets.push_back(to_local(Buffer::output, 0));
    }
    next.finishes = true;
    if (has_extra()) {
      next.targets.push_back(assignment_.send_to(rank_ + n_exchanging_, 0));
    }
    add_step(program_, std::move(next));
    return std::move(program_);
  }
};

class Halving : Exchange {
 public:
  explicit Halving(const Assignment& assignment) : Exchange(assignment, 2 * assignment.topology.diameter()) {}

  Program build() {
    if (is_extra()) {
      lend_input();
      for (uint32_t distance = 0; distance < n_exchanging_; ++distance) {
        get_result(piece_of((rank_ - n_exchanging_) ^ distance), distance);
      }
      return std::move(program_);
    }
    fold_extra();
    Piece mine = whole_;
    for (uint32_t bit = n_exchanging_ / 2; bit > 0; bit /= 2) {
      give_half(mine, bit);
    }
    for (uint32_t distance = 1; distance < n_exchanging_; ++distance) {
      pass_on(distance);
    }
    return std::move(program_);
  }

 private:
  /// The piece whose sum a rank makes.
  Piece piece_of(uint32_t rank) const {
    Piece piece = whole_;
    for (uint32_t bit = n_exchanging_ / 2; bit > 0; bit /= 2) {
      piece = cut_evenly(piece, assignment_.problem.element_bytes, 2)[(rank & bit) != 0 ? 1 : 0];
    }
    return piece;
  }

  void fold_extra() {
    if (has_extra()) {
      Step fold = step(whole_);
      fold.sources = {from_local(Buffer::input, 0), from_transfer(rank_ + n_exchanging_, 0)};
      fold.targets = {to_local(Buffer::output, 0)};
      written_by_ = add_step(program_, std::move(fold));
    }
  }

  Source so_far(uint64_t offset) const {
    return from_local(written_by_ == kNoStep ? Buffer::input : Buffer::output, offset, written_by_);
  }

  /// Halves `mine`: the partner gets the other half, of which it makes the sum.
  void give_half(Piece& mine, uint32_t bit) {
    const uint32_t partner = rank_ ^ bit;
    const std::vector<Piece> halves = cut_evenly(mine, assignment_.problem.element_bytes, 2);
    const Piece& theirs = halves[(rank_ & bit) != 0 ? 0 : 1];
    mine = halves[(rank_ & bit) != 0 ? 1 : 0];
    Step give = step(theirs);
    give.sources = {so_far(theirs.offset)};
    give.targets = {assignment_.send_to(partner, 0)};
    Step keep = step(mine);
    keep.sources = {so_far(mine.offset), from_transfer(partner, 0)};
    keep.targets = {to_local(Buffer::output, mine.offset)};
    if (bit == 1) {
      keep.finishes = true;
      send_on(keep, 0);
    }
    add_step(program_, std::move(give));
    written_by_ = add_step(program_, std::move(keep));
  }

  /// A finished piece comes from the rank whose number is `distance` (bit by bit) from this: by lower bits first.
  void pass_on(uint32_t distance) {
    const uint32_t bit = std::bit_floor(distance);
    Step pass = step(piece_of(rank_ ^ distance));
    pass.sources = {from_transfer(rank_ ^ bit, 1 + (distance ^ bit))};
    pass.targets = {to_local(Buffer::output, piece_of(rank_ ^ distance).offset)};
    send_on(pass, distance);
    add_step(program_, std::move(pass));
  }

  /// To all partners of later rounds. The first transfer to a partner has carried a half before.
  void send_on(Step& sent, uint32_t distance) const {
    for (uint32_t bit = distance == 0 ? 1 : std::bit_floor(distance) * 2; bit < n_exchanging_; bit *= 2) {
      sent.targets.push_back(assignment_.send_to(rank_ ^ bit, 1 + distance));
    }
    if (has_extra()) {
      sent.targets.push_back(assignment_.send_to(rank_ + n_exchanging_, distance));
    }
  }

  uint32_t written_by_ = kNoStep;  // what this rank has so far
};

}  // namespace

Program build_doubling(const Assignment& assignment) { return Doubling(assignment).build(); }

Program build_halving(const Assignment& assignment) { return Halving(assignment).build(); }

}  // namespace ringbolt::collective
