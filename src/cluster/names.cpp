#include "cluster/names.h"

#include <algorithm>

#include "cluster/limits.h"

namespace ringbolt::cluster {
namespace {

// The C locale's answers, whatever locale the program has set.
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool is_name_character(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '.' || c == '-'; }

bool has_name_length(std::string_view name) { return !name.empty() && name.size() <= kMaxNameBytes; }

}  // namespace

bool is_cluster_name(std::string_view name) {
  return has_name_length(name) && name.front() != '.' && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), is_name_character);
}

bool is_node_name(std::string_view name) {
  return is_cluster_name(name) && name != "local" && !std::all_of(name.begin(), name.end(), is_digit);
}

bool is_device_name(std::string_view name) {
  return has_name_length(name) && is_letter(name.front()) &&
         std::all_of(name.begin(), name.end(), [](char c) { return is_letter(c) || is_digit(c) || c == '_'; });
}

bool is_netdev_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNetdevBytes && name.front() != '.' && name.front() != '-' &&
         name != "lo" && std::all_of(name.begin(), name.end(), is_name_character);
}

bool is_stream_text(std::string_view text) {
  return !text.empty() && text.size() <= kMaxStreamBytes && std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c < 0x7f && std::string_view("\"'\\;").find(c) == std::string_view::npos;
  });
}

bool is_profile_text(std::string_view text) {
  static constexpr std::string_view kPunctuation = "=,._-";
  return !text.empty() && text.size() <= kMaxProfileBytes && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || kPunctuation.find(c) != std::string_view::npos;
  });
}

bool is_prefix(std::string_view path) {
  return !path.empty() && path.size() <= kMaxHostBytes && path.front() == '/' &&
         std::all_of(path.begin(), path.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace ringbolt::cluster
