#include "bootstrap/jaccl_devices.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/overlay_device.h"
#include "bootstrap/mlx_json.h"

namespace ringbolt::bootstrap {
namespace {

using base::Json;

// Of lists: the table, a row, a cell.
constexpr int kMaxDepth = 3;
constexpr size_t kMaxDeviceBytes = 63;  // IBV_SYSFS_NAME_MAX, with its final zero, is 64

std::string place_of(std::string_view format, size_t row, size_t column) {
  // The formats are constants of ours (problem_of()'s callers): no text of a file gets here.
  return fmt::format(fmt::runtime(format), row, column);
}

std::string join(const Json& list, std::string_view indent, std::string_view separator) {
  std::string text;
  for (const Json& entry : list) {
    text += fmt::format("{}{}{}", text.empty() ? "" : separator, indent, entry.dump());
  }
  return text;
}

}  // namespace

const std::string& word_of(const Json& value, const std::string& place, size_t most_bytes) {
  const std::string& text = base::text_of(value, place);
  // No quotes and backslashes, so that a word looks the same in a file and in an environment.
  const bool is_word =
      std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~' && c != '"' && c != '\\'; });
  if (text.empty() || text.size() > most_bytes || !is_word) {
    base::stop(place, fmt::format("{} is no word of 1 to {} letters", base::quote(text), most_bytes));
  }
  return text;
}

std::vector<std::string> cell_of(const Json& value, const std::string& place) {
  if (value.is_null()) {
    return {};
  }
  if (value.is_string()) {
    return {word_of(value, place, kMaxDeviceBytes)};
  }
  if (!value.is_array()) {
    base::stop(place, "is neither null, nor the name of a device, nor a list of names");
  }
  std::vector<std::string> devices;
  for (const Json& device : base::list(value, place, 1, kMaxMlxRails)) {
    devices.push_back(word_of(device, fmt::format("{}[{}]", place, devices.size()), kMaxDeviceBytes));
  }
  return devices;
}

Json to_json(const std::vector<std::string>& cell) {
  if (cell.empty()) {
    return nullptr;
  }
  return cell.size() == 1 ? Json(cell[0]) : Json(cell);
}

base::Parsed<JacclDevices> parse_jaccl_devices(std::string_view text) {
  if (text.size() > kMaxMlxFileBytes) {
    return base::refuse(0, fmt::format("is longer than {} bytes", kMaxMlxFileBytes));
  }
  try {
    const Json json = base::parse_json(text, kMaxDepth);
    JacclDevices devices;
    for (const Json& row : base::list(json, "the file", 1, kMaxMlxRanks)) {
      const size_t i = devices.cells.size();
      const std::string place = fmt::format("[{}]", i);
      // Said here, with the place, though problem_of() would find it too.
      if (!row.is_array() || row.size() != json.size()) {
        base::stop(place,
                   fmt::format("is no list of {} cells, one for each row: the table must be square", json.size()));
      }
      auto& cells = devices.cells.emplace_back();
      for (const Json& cell : row) {
        cells.push_back(cell_of(cell, fmt::format("[{}][{}]", i, cells.size())));
      }
    }
    if (std::string problem = problem_of(devices, "[{}][{}]"); !problem.empty()) {
      base::stop("", problem);
    }
    return devices;
  } catch (base::JsonRefusal& refusal) {
    return tl::unexpected(std::move(refusal.error));
  }
}

std::string problem_of(const JacclDevices& devices, std::string_view place_format) {
  const auto& cells = devices.cells;
  bool is_any_set = false;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (cells[i].size() != cells.size()) {
      return fmt::format("row {} has {} cells of {}", i, cells[i].size(), cells.size());
    }
    if (!cells[i][i].empty()) {
      return fmt::format("{}: must be null: no device leads from rank {} to itself", place_of(place_format, i, i), i);
    }
    for (size_t j = 0; j < i; ++j) {
      is_any_set = is_any_set || !cells[i][j].empty() || !cells[j][i].empty();
      if (cells[i][j].size() != cells[j][i].size()) {
        return fmt::format("{}: has {} devices, and {} has {}: both ends of a pair need one for each cable",
                           place_of(place_format, j, i), cells[j][i].size(), place_of(place_format, i, j),
                           cells[i][j].size());
      }
    }
  }
  const bool is_alone = cells.size() == 1;  // needs none
  return is_any_set || is_alone ? "" : "no rank has a device to any other: all cells are null";
}

std::string to_text(const JacclDevices& devices) {
  std::string text;
  for (const auto& row : devices.cells) {
    Json cells = Json::array();
    for (const auto& cell : row) {
      cells.push_back(to_json(cell));
    }
    text += fmt::format("{}[{}]", text.empty() ? "" : ",\n ", join(cells, "", ", "));
  }
  return "[" + text + "]\n";
}

std::vector<std::string> warnings(const JacclDevices& devices) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < devices.cells.size(); ++i) {
    std::set<std::string> seen;
    for (size_t j = 0; j < devices.cells[i].size(); ++j) {
      for (const std::string& device : devices.cells[i][j]) {
        // Which leads everywhere.
        if (device != base::kOverlayDevice && !seen.insert(device).second) {
          lines.push_back(
              fmt::format("[{}][{}]: {} occurs twice among the devices of rank {}: one cable leads to one "
                          "place",
                          i, j, device, i));
        }
      }
    }
  }
  return lines;
}

}  // namespace ringbolt::bootstrap
