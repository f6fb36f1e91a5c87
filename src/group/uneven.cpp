// all_to_all of shares that each rank knows its own part of: the ranks ask each other first.
#include <fmt/core.h>

#include <cerrno>
#include <utility>

#include "group/arguments.h"
#include "group/communicator.h"

namespace ringbolt::group {

/// Of each rank 2 * n_ranks numbers of 64 bits: elements to each rank, then from each.
Asked counting_of(uint32_t n_ranks) {
  Asked exchange;
  exchange.phase = Phase::counting;
  exchange.what.problem.operation = collective::Operation::all_gather;
  exchange.what.problem.n_ranks = n_ranks;
  exchange.what.problem.element_bytes = sizeof(uint64_t);
  exchange.what.n_equal_shares = n_ranks;
  exchange.what.equal_share_bytes = size_t{2} * n_ranks * sizeof(uint64_t);
  exchange.type = collective::Type::uint64;
  return exchange;
}

std::shared_ptr<Call> Communicator::begin_uneven(Asked asked, std::span<const size_t> sent,
                                                 std::span<const size_t> received, uint64_t deadline_ns) {
  if (!broken_.is_ok()) {
    return refuse(broken_);
  }
  auto uneven = std::make_shared<Uneven>();
  uneven->asked = std::move(asked);
  uneven->counts = std::make_shared<Counts>();
  Counts& counts = *uneven->counts;
  counts.mine.assign(sent.begin(), sent.end());
  counts.mine.insert(counts.mine.end(), received.begin(), received.end());
  counts.all.resize(counts.mine.size() * n_ranks());

  Asked exchange = counting_of(n_ranks());
  exchange.input = counts.mine.data();
  exchange.output = counts.all.data();

  const CallId id{false, 0, 0, next_call_++, Phase::counted};
  CallShape shape;
  shape.phase = Phase::counted;
  shape.operation = collective::Operation::all_to_all;
  shape.type = uneven->asked.type;
  uneven->asked.phase = Phase::counted;
  // Its real signature follows from the counts (become()); until then only its phase is known.
  uneven->call = std::make_shared<Call>(*this, id, shape, signature_of(id.phase, 0), deadline_ns);
  activate(uneven->call);
  // Its end is that of the whole call, which has the deadline.
  uneven->counting = begin_numbered(id.in(Phase::counting), exchange, UINT64_MAX);
  // Its execution reads and writes them, also when the whole call has failed already.
  uneven->counting->memory = uneven->counts;
  uneven_.push_back(uneven);
  go_on_with_uneven();
  return uneven->call;
}

void Communicator::go_on_with_uneven() {
  for (size_t i = 0; i < uneven_.size();) {
    const std::shared_ptr<Uneven> uneven = uneven_[i];
    if (!uneven->call->is_done() && !uneven->counting->is_done()) {
      ++i;
      continue;
    }
    uneven_.erase(uneven_.begin() + static_cast<std::ptrdiff_t>(i));
    if (uneven->call->is_done()) {
      uneven->counting->finish(uneven->call->status());
    } else {
      begin_counted(*uneven);
    }
  }
}

void Communicator::begin_counted(Uneven& uneven) {
  if (const Status& counted = uneven.counting->status(); !counted.is_ok()) {
    uneven.call->finish(counted);  // all ranks have heard of it
    return;
  }
  const size_t n = n_ranks();
  const std::vector<uint64_t>& all = uneven.counts->all;
  std::vector<uint64_t>& shares = uneven.asked.what.problem.shares;
  shares.clear();
  for (size_t from = 0; from < n; ++from) {
    for (size_t to = 0; to < n; ++to) {
      const uint64_t sends = all[from * 2 * n + to];
      const uint64_t awaits = all[to * 2 * n + n + from];
      // So none has to be told.
      if (sends != awaits) {  // as all ranks find
        uneven.call->finish({EPROTO, fmt::format("all_to_allv: rank {} sends {} elements to rank {}, which awaits {}",
                                                 from, sends, to, awaits)});
        return;
      }
      shares.push_back(bytes_of(sends, uneven.asked.what.problem.element_bytes));
    }
  }
  Status refused;
  PlanCache::Plan* const plan = plan_of(uneven.asked, refused);
  if (plan == nullptr) {
    fail(*uneven.call, refused);
    return;
  }
  uneven.call->become(plan->shape, plan->signature);
  begin_planned(*uneven.call, *plan, uneven.asked);
}

Status Communicator::timed_out_uneven(const Call& call) const {
  for (const std::shared_ptr<Uneven>& uneven : uneven_) {
    if (uneven->call.get() == &call) {
      return timed_out(*uneven->counting);
    }
  }
  return {ETIMEDOUT, "all_to_allv: the deadline has passed"};
}

}  // namespace ringbolt::group
