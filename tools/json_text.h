#pragma once

#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

/// An optional member is null, or its value.
template <class T>
struct nlohmann::adl_serializer<std::optional<T>> {
  static void to_json(json& to, const std::optional<T>& from) { to = from ? json(*from) : json(nullptr); }
  static void from_json(const json& from, std::optional<T>& to) {
    to = from.is_null() ? std::nullopt : std::optional(from.get<T>());
  }
};

namespace ringbolt::tools {

/// What one process of ours tells another: a struct that nlohmann's macros describe, as one line of JSON, without its
/// end. Bytes that are no UTF-8 are replaced. Thread-safe.
template <class T>
std::string to_line(const T& value) {
  return nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// And back; any bytes are safe to pass. A number that its member can't hold (negative, too large, a fraction) makes
/// nothing of the whole: the library cuts it in silence, and then the value is written otherwise. So does a member that
/// T does not have. What else must hold, as which values an enum has, who is told looks at. Thread-safe.
template <class T>
std::optional<T> from_line(std::string_view text) {
  try {
    const auto json = nlohmann::json::parse(text);
    auto value = json.get<T>();
    return to_line(value) == to_line(json) ? std::optional(std::move(value)) : std::nullopt;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace ringbolt::tools
