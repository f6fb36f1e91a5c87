#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bringup/gid_choice.h"
#include "bringup/port_card.h"
#include "verbs/objects.h"

namespace ringbolt::bringup {

/// The GID table of a port as the library shows it; empty slots too. Throws base::Error. Does not block. 256 entries
/// at most: an index has 8 bits in verbs.
std::vector<GidEntry> read_gid_table(const verbs::Context& context, uint8_t port);

/// Of a table those that can be used, as many as a card holds, `chosen` among them. Pure.
std::vector<CardGid> card_gids(std::span<const GidEntry> table, uint8_t chosen);

/// What a port can do: asked where the library answers, else tried; where neither tells, the least that is known of any
/// device (Apple's TN3205). Makes a queue pair of each type, brings it to INIT, and destroys it again: some devices
/// refuse a type only there. Throws base::Error where a queue pair is refused for another reason than its type, as when
/// all are taken. May block in the driver.
Capabilities probe(const verbs::ProtectionDomain& pd, const verbs::CompletionQueue& cq, uint8_t port);

/// A port that bring-up can use, with why its GID is the one.
struct SurveyedPort {
  PortCard card;
  std::string gid_choice;
};

struct UnusablePort {
  std::string device;
  uint8_t port = 0;  ///< 0: the device as a whole
  std::string reason;
  bool is_stuck = false;  ///< a call of its driver does not return; the reason names the device, too
};

struct Survey {
  std::vector<SurveyedPort> usable;  ///< by device and port
  std::vector<UnusablePort> unusable;
  std::vector<PortCard> cards() const;
};

/// Looks at all ports of all devices, one device after the other, and leaves nothing open. What is wrong with one port
/// does not hide the others, nor does a device that does not answer: each is looked at in a thread of its own, which is
/// left behind after kMostLookMs, or earlier for others to have their time before `deadline_ns` (base::now_ns()).
/// Blocks until that at most. Throws base::Error only if there is no list of devices, and verbs::Stuck if the library
/// does not give it. Throws std::system_error where no thread is to be had. Needs no more than a protection domain, a
/// completion queue and a queue pair at a time.
Survey survey(const verbs::Library& library, uint64_t deadline_ns = UINT64_MAX);

inline constexpr uint64_t kMostLookMs = 10'000;

/// Of one device, in a thread of its own that is left behind at `deadline_ns` (base::now_ns()). Whatever goes wrong is
/// in what it returns, for the device as a whole.
Survey survey_device(const verbs::Library& library, const std::string& device, uint64_t deadline_ns);

}  // namespace ringbolt::bringup
