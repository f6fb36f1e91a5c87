#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bringup/cables.h"
#include "engine/chunk_header.h"

namespace ringbolt::mesh {

/// What a rank says of itself before anybody touches a device.
struct Settings {
  /// Raised with any change of what ranks exchange in bring-up; ranks of two versions don't join.
  static constexpr uint32_t kVersion = 6;  ///< of bring-up as a whole

  engine::Checksums checksums = engine::Checksums::carried;
  bool is_measured = true;
  uint32_t device_file = 0;  ///< check_of()
  uint32_t random = 0;       ///< rank 0's is the session
  // No point in time, since hosts' monotonic clocks begin at their own starts.
  uint32_t left_ms = 0;  ///< until its deadline

  friend bool operator==(const Settings&, const Settings&) = default;
};

/// A number that device files have in common that say the same, never 0; 0 without one. Pure.
uint32_t check_of(const bringup::DeviceMatrix& matrix);

/// The version comes first, and will in all versions.
std::vector<std::byte> emit(const Settings& settings);
/// Any bytes are safe. Throws JoinError that says what is wrong with `rank`, or differs from this rank's settings.
Settings parse_settings(std::span<const std::byte> bytes, uint32_t rank, const Settings& ours);

}  // namespace ringbolt::mesh
