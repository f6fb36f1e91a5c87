#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "collective/element.h"
#include "collective/problem.h"
#include "group/call.h"
#include "group/plan_cache.h"
#include "group/short_calls.h"

// From the arguments of a call to what is asked of all ranks: nothing here is looked up or refused (arguments.h does
// that), so any numbers are safe. Pure.
namespace ringbolt::group {

/// A collective to be begun.
/// The buffers are the program's; nobody here touches them.
struct Asked {
  PlanKey what;
  Phase phase = Phase::only;
  collective::Type type = collective::Type::uint8;
  collective::Reduction reduction = collective::Reduction::sum;
  const void* input = nullptr;
  void* output = nullptr;
};

/// 0 of a type that there is not: objection() says so.
uint32_t element_bytes(collective::Type type);
/// Of how many shares a collective is, as collective/problem.h has them; 0 of a barrier.
uint64_t n_shares(collective::Operation operation, uint64_t n_ranks);

/// Of equal shares.
Asked ask(const ShortKey& key, uint32_t n_ranks, const void* in, void* out);
/// An all_gather of which rank i brings `counts[i]` elements.
Asked ask_all_gatherv(std::span<const size_t> counts, const void* in, void* out, collective::Type type);
/// An all_to_all of which rank `rank` knows its own part: `sent[i]` elements go to rank i, `received[i]` come from it.
/// The shares of others are 0: only begin_uneven() finds them out. `sent` and `received`: one number for each rank.
Asked ask_all_to_allv(uint32_t rank, std::span<const size_t> sent, std::span<const size_t> received, const void* in,
                      void* out, collective::Type type);
/// How ranks tell each other how much each has for each before an all_to_allv: two numbers for every rank, of all.
/// Of each rank 2 * n_ranks numbers of 64 bits: elements to each rank, then from each. Without buffers.
Asked counting_of(uint32_t n_ranks);

}  // namespace ringbolt::group
