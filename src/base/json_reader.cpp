#include "base/json_reader.h"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>

namespace ringbolt::base {
namespace {

/// Watches the parse: depth, and keys that occur twice in one object (the last would win silently).
class Watch {
 public:
  explicit Watch(int max_depth) : max_depth_(max_depth) {}

  bool operator()(int depth, Json::parse_event_t event, const Json& value) {
    using Event = Json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      // What walks a value recurses, the library's own functions too: deep text of a stranger would overflow the stack.
      if (depth >= max_depth_) {
        stop("", fmt::format("nested deeper than {} levels", max_depth_));
      }
      // Depth counts the levels around the value: the keys inside an object come with a depth one higher than its own
      // start.
      keys_.resize(static_cast<size_t>(depth) + 2);
      keys_.back().clear();
    } else if (event == Event::key) {
      const std::string& key = value.get_ref<const std::string&>();
      if (!keys_[std::min(static_cast<size_t>(depth), keys_.size() - 1)].insert(key).second) {
        stop("", fmt::format("field {} occurs twice", quote(key)));
      }
    }
    return true;
  }

 private:
  int max_depth_;
  std::vector<std::set<std::string>> keys_ = std::vector<std::set<std::string>>(1);
};

}  // namespace

void stop(const std::string& place, const std::string& problem, size_t line) {
  throw JsonRefusal{{line, place.empty() ? problem : place + ": " + problem}};
}

std::string quote(std::string_view text) {
  // What is quoted goes into one line of a terminal.
  constexpr size_t kMostBytes = 40;
  std::string safe = "\"";
  for (const char c : text.substr(0, kMostBytes)) {
    safe += c >= ' ' && c <= '~' ? c : '?';
  }
  return safe + (text.size() > kMostBytes ? "...\"" : "\"");
}

Json parse_json(std::string_view text, int max_depth) {
  try {
    return Json::parse(text.begin(), text.end(),
                       [watch = Watch(max_depth)](int depth, Json::parse_event_t event, Json& value) mutable {
                         return watch(depth, event, value);
                       });
  } catch (const Json::parse_error& error) {
    const size_t byte = std::min(error.byte, text.size());
    const auto newlines = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(byte), '\n');
    const bool is_blank = text.find_first_not_of(" \t\r\n") == std::string_view::npos;
    // The parser counts from 1, and one more at the end.
    stop("",
         is_blank ? "no JSON: there is nothing in it"
         : error.byte > text.size()
             ? fmt::format("no JSON: it ends in the middle, after {} bytes; is it whole?", byte)
             : fmt::format("no JSON at byte {}, where {} is", byte, quote(text.substr(byte - 1, 1))),
         static_cast<size_t>(newlines) + 1);
  } catch (const Json::exception&) {
    stop("", "no JSON that can be held (a number out of range?)");
  }
}

void check_fields(const Json& object, const std::string& place, std::initializer_list<std::string_view> known) {
  if (!object.is_object()) {
    stop(place, "is no object");
  }
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      stop(place, fmt::format("unknown field {}; known are {}", quote(key), fmt::join(known, ", ")));
    }
  }
}

const Json& field(const Json& object, const std::string& place, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) {
    stop(place, fmt::format("field \"{}\" is missing", key));
  }
  return *found;
}

const Json& list(const Json& value, const std::string& place, size_t least, size_t most) {
  if (!value.is_array() || value.size() < least || value.size() > most) {
    stop(place, fmt::format("is no list of {} to {} entries", least, most));
  }
  return value;
}

const std::string& text_of(const Json& value, const std::string& place) {
  if (!value.is_string()) {
    stop(place, "is no text");
  }
  return value.get_ref<const std::string&>();
}

uint32_t number_of(const Json& value, const std::string& place, uint32_t least, uint32_t most) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() < least || value.get<uint64_t>() > most) {
    stop(place, fmt::format("is no whole number from {} to {}", least, most));
  }
  return value.get<uint32_t>();
}

}  // namespace ringbolt::base
