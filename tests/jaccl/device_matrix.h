#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace ringbolt::jaccl {

/// The device by which rank `row` reaches rank `column`; empty: none.
using Matrix = std::vector<std::vector<std::string>>;

/// Every rank reaches every other one through the same device.
inline Matrix shared_device(size_t world, const std::string& device) {
  Matrix devices(world, std::vector<std::string>(world, device));
  for (size_t i = 0; i < world; ++i) {
    devices[i][i].clear();
  }
  return devices;
}

/// Writes the matrix as the JSON file that a rank reads; an empty name becomes null.
inline std::filesystem::path write_devices(const std::filesystem::path& folder, const Matrix& devices) {
  const std::filesystem::path path = folder / "devices.json";
  std::ofstream out(path);
  out << "[";
  for (size_t row = 0; row < devices.size(); ++row) {
    out << (row > 0 ? ",[" : "[");
    for (size_t column = 0; column < devices[row].size(); ++column) {
      const std::string& name = devices[row][column];
      out << (column > 0 ? "," : "") << (name.empty() ? "null" : "\"" + name + "\"");
    }
    out << "]";
  }
  out << "]";
  return path;
}

}  // namespace ringbolt::jaccl
