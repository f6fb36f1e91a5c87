#include "mesh/settings.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/crc.h"
#include "mesh/failure.h"
#include "mesh/shares.h"

namespace ringbolt::mesh {
namespace {

const char* name_of(engine::Checksums checksums) {
  return checksums == engine::Checksums::none ? "off" : checksums == engine::Checksums::carried ? "on" : "every";
}

/// Why two ranks can't be of one group; nothing if they can.
std::string difference(uint32_t rank, const Settings& theirs, const Settings& ours) {
  if (theirs.checksums != ours.checksums) {
    return fmt::format("rank {} has checksums {}, this rank {}: set RINGBOLT_CRC alike", rank,
                       name_of(theirs.checksums), name_of(ours.checksums));
  }
  if (theirs.is_measured != ours.is_measured) {
    return fmt::format("rank {} {} its cables, this rank {}: set RINGBOLT_MEASURE alike", rank,
                       theirs.is_measured ? "measures" : "does not measure", ours.is_measured ? "does" : "does not");
  }
  if (theirs.device_file != ours.device_file) {
    return fmt::format("rank {} has {} device file (JACCL_IBV_DEVICES){}: give all ranks the same", rank,
                       theirs.device_file == 0 ? "no"
                       : ours.device_file == 0 ? "a"
                                               : "another",
                       theirs.device_file == 0 ? ", and this rank one"
                       : ours.device_file == 0 ? ", and this rank none"
                                               : "");
  }
  return {};
}

}  // namespace

/// Not a secret or a seal: two files that differ and have one check are a chance of one in four thousand million.
uint32_t check_of(const bringup::DeviceMatrix& matrix) {
  std::string text;
  for (const auto& row : matrix) {
    for (const auto& cell : row) {
      text += fmt::format("[{}]", fmt::join(cell, ","));
    }
    text += '\n';
  }
  const uint32_t check = base::crc32(0, std::as_bytes(std::span(text)));
  return matrix.empty() ? 0 : std::max(check, 1U);
}

std::vector<std::byte> emit(const Settings& settings) {
  base::ByteWriter writer;
  writer.put(Settings::kVersion);
  writer.put(static_cast<uint8_t>(settings.checksums));
  writer.put(static_cast<uint8_t>(settings.is_measured));
  writer.put(settings.device_file);
  writer.put(settings.random);
  writer.put(settings.left_ms);
  return writer.bytes();
}

Settings parse_settings(std::span<const std::byte> bytes, uint32_t rank, const Settings& ours) {
  base::ByteReader reader(bytes);
  if (const auto version = reader.take<uint32_t>(); version != Settings::kVersion) {
    throw JoinError(
        fmt::format("rank {} speaks version {} of bring-up, this rank version {}: install the same release "
                    "everywhere",
                    rank, version, Settings::kVersion));
  }
  Settings theirs;
  // A value that is none of the enumeration's equals no value of ours, and difference() refuses it.
  theirs.checksums = static_cast<engine::Checksums>(reader.take<uint8_t>());
  theirs.is_measured = reader.take<uint8_t>() != 0;
  theirs.device_file = reader.take<uint32_t>();
  theirs.random = reader.take<uint32_t>();
  theirs.left_ms = reader.take<uint32_t>();
  if (!reader.is_sound() || !reader.is_at_end()) {
    throw JoinError(fmt::format("rank {} described its settings wrongly", rank));
  }
  if (const std::string text = difference(rank, theirs, ours); !text.empty()) {
    throw JoinError(text);
  }
  return theirs;
}

}  // namespace ringbolt::mesh
