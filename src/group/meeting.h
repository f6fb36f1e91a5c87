#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bootstrap/config.h"
#include "bootstrap/environment.h"
#include "bootstrap/sockets.h"
#include "group/join_options.h"

// Ranks that can tell each other something before they meet: what of, and what follows from it.
namespace ringbolt::group {

/// What a rank tells all others through the program's exchange. A value.
struct Tidings {
  static constexpr size_t kBytes = 1024;
  static constexpr uint32_t kMagic = 0x31746d72;  ///< "rmt1"

  std::string machine;  ///< alike where ranks reach each other by 127.0.0.1
  std::string host;     ///< of rank 0: where others reach it, if it has been told
  uint16_t port = 0;    ///< likewise; 0: it can't listen
  std::string secret;   ///< made up by rank 0 where the program has none
  std::string problem;  ///< why this rank can't take part

  friend bool operator==(const Tidings&, const Tidings&) = default;
};

/// kBytes of them; of what is too long the beginning.
std::vector<std::byte> emit(const Tidings& tidings);
/// Any bytes are safe. Nothing: they are of no such rank.
std::optional<Tidings> parse_tidings(std::span<const std::byte> bytes);

/// What this rank does, once all have told: fills in where to meet. Pure. Throws JoinError, on all ranks alike.
void take(const std::vector<Tidings>& all, bootstrap::Config& meeting);

/// Where ranks meet, and what rank 0 holds open until they have.
struct Meeting {
  bootstrap::Config config;
  bootstrap::Listening listening;
};

/// Of a limit for the program's exchange and all of join() behind it, what the exchange leaves; but 30 s at least, or
/// `limit_ms` if that is less. For a rank that came early has spent its limit on one that came late, and if it gave up
/// soon it would end bring-up for all. So join() takes up to 30 s longer than its limit.
uint64_t left_for_bring_up_ms(uint64_t limit_ms, uint64_t took_ms);

/// By the environment, which is variables_of() these options, or by the program's exchange if it has one, which is
/// called once. Throws JoinError and base::Error.
Meeting meeting_of(const JoinOptions& options, const bootstrap::Environment& environment);

}  // namespace ringbolt::group
