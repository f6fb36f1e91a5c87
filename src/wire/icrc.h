#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "wire/flow.h"

/// The invariant CRC of RoCEv2 (IBTA volume 1, annex A17.3). Layout and rules: docs/formats/rocev2.md.
/// Hot path: no allocation, no lock. Thread-safe.
namespace ringbolt::wire {

/// The ICRC of `packet` (BTH to pad, without the ICRC; at least a BTH) as a number; on the wire it lies little-endian.
/// Covers IP and UDP headers with the don't-fragment bit set. `ipv4_id` counts only between IPv4 addresses.
uint32_t icrc(const Flow& flow, uint16_t ipv4_id, std::span<const std::byte> packet);

/// Computes the ICRC and writes it into the last four bytes of `packet` (BTH to ICRC).
void put_icrc(const Flow& flow, uint16_t ipv4_id, std::span<std::byte> packet);

/// Whether `packet` (BTH to ICRC) carries its ICRC. Accepts any bytes. A UDP socket hides the identification of an IPv4
/// header, which the ICRC covers; so between IPv4 addresses any identification that explains the ICRC is accepted,
/// and 16 of the 32 bits check. `likely_id` is tried first, and then costs no more than to compute the ICRC.
bool check_icrc(const Flow& flow, std::span<const std::byte> packet, uint16_t likely_id = 0);

/// For IPv4: the identification with which the ICRC is right, if there is one. Never more than one is.
std::optional<uint16_t> find_ipv4_id(const Flow& flow, std::span<const std::byte> packet, uint16_t likely_id = 0);

}  // namespace ringbolt::wire
