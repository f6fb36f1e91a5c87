#include "workload.h"

#include <algorithm>
#include <map>
#include <stdexcept>

namespace ringbolt::test {

Workload::Workload(Group& group, const Work& work) : group_(group), work_(work) {
  // Enough for each operation and type.
  in_.resize(2 * work.count * group.size() + 2);
  out_.resize(in_.size());
}

Status Workload::run(uint32_t turn) {
  turn_ = turn;
  const size_t n_in = work_.count * group_.size();
  for (size_t i = 0; i < n_in; ++i) {
    in_[i] = input_at(group_.rank(), i);
  }
  std::fill(out_.begin(), out_.end(), 0xdeadbeefU);
  const std::string& op = work_.operation;
  const size_t count = work_.count;
  if (op == "all_reduce") {
    return group_.all_reduce(in_.data(), out_.data(), count, work_.type, work_.reduction, work_.options);
  }
  if (op == "reduce_scatter") {
    return group_.reduce_scatter(in_.data(), out_.data(), count, work_.type, work_.reduction, work_.options);
  }
  if (op == "all_gather") {
    return group_.all_gather(in_.data(), out_.data(), count, work_.type, work_.options);
  }
  if (op == "broadcast") {
    std::copy(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(count), out_.begin());
    return group_.broadcast(out_.data(), count, work_.type, work_.root, work_.options);
  }
  if (op == "reduce") {
    return group_.reduce(in_.data(), out_.data(), count, work_.type, work_.reduction, work_.root, work_.options);
  }
  if (op == "gather") {
    return group_.gather(in_.data(), out_.data(), count, work_.type, work_.root, work_.options);
  }
  if (op == "scatter") {
    return group_.scatter(in_.data(), out_.data(), count, work_.type, work_.root, work_.options);
  }
  if (op == "all_to_all") {
    return group_.all_to_all(in_.data(), out_.data(), count, work_.type, work_.options);
  }
  if (op == "barrier") {
    return group_.barrier(work_.options);
  }
  if (op == "send") {
    return group_.send(in_.data(), count, work_.type, work_.peer, work_.options);
  }
  if (op == "recv") {
    return group_.recv(out_.data(), count, work_.type, work_.peer, work_.options);
  }
  throw std::invalid_argument("no operation " + op);
}

uint32_t Workload::sum_at(size_t i) const {
  uint32_t sum = 0;
  for (uint32_t rank = 0; rank < group_.size(); ++rank) {
    sum += input_at(rank, i);
  }
  return sum;
}

bool Workload::is_output(const std::vector<uint32_t>& output, size_t offset, uint32_t rank, size_t from,
                         size_t n) const {
  for (size_t i = 0; i < n; ++i) {
    if (output[offset + i] != input_at(rank, from + i)) {
      return false;
    }
  }
  return true;
}

bool Workload::is_sum(size_t from, size_t n) const {
  for (size_t i = 0; i < n; ++i) {
    if (out_[i] != sum_at(from + i)) {
      return false;
    }
  }
  return true;
}

bool Workload::is_exact() const {
  if (work_.type != Type::int32 || work_.reduction != Reduction::sum) {
    return true;
  }
  const std::string& op = work_.operation;
  const size_t count = work_.count;
  const uint32_t rank = group_.rank();
  if (op == "all_reduce" || (op == "reduce" && rank == work_.root)) {
    return is_sum(0, count);
  }
  if (op == "reduce_scatter") {
    return is_sum(rank * count, count);
  }
  if (op == "broadcast") {
    return is_output(out_, 0, work_.root, 0, count);
  }
  if (op == "scatter") {
    return is_output(out_, 0, work_.root, rank * count, count);
  }
  if (op == "recv") {
    return is_output(out_, 0, work_.peer, 0, count);
  }
  bool is_right = true;
  for (uint32_t from = 0; from < group_.size(); ++from) {
    if (op == "all_gather" || (op == "gather" && rank == work_.root)) {
      is_right = is_right && is_output(out_, from * count, from, 0, count);
    } else if (op == "all_to_all") {
      is_right = is_right && is_output(out_, from * count, from, rank * count, count);
    }
  }
  return is_right;
}

Type type_of(const std::string& name) {
  static const std::map<std::string, Type> kTypes = {
      {"int32", Type::int32}, {"uint32", Type::uint32}, {"float32", Type::float32}, {"float64", Type::float64}};
  const auto found = kTypes.find(name);
  if (found == kTypes.end()) {
    throw std::invalid_argument("no type " + name);
  }
  return found->second;
}

Reduction reduction_of(const std::string& name) {
  static const std::map<std::string, Reduction> kReductions = {
      {"sum", Reduction::sum}, {"prod", Reduction::prod}, {"max", Reduction::max}, {"min", Reduction::min}};
  const auto found = kReductions.find(name);
  if (found == kReductions.end()) {
    throw std::invalid_argument("no reduction " + name);
  }
  return found->second;
}

}  // namespace ringbolt::test
