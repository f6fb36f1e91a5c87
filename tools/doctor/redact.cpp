#include "doctor/redact.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "doctor/facts.h"

namespace ringbolt::tools::doctor {
namespace {

using Mac = std::array<uint8_t, 6>;

/// Before the colon of a line whose value is a name or number of one machine.
constexpr std::string_view kNameKeys[] = {
    "Serial Number", "Serial Number (system)", "Hardware UUID", "board_id", "Device Name", "/device_name"};
/// ":32323"
constexpr size_t kMostTail = 7;

bool is_hex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }
bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; }

uint8_t hex_byte(std::string_view two) {
  return static_cast<uint8_t>(std::strtoul(std::string(two).c_str(), nullptr, 16));
}

/// "10:70:fd:00:00:01"
std::optional<Mac> mac_of(std::string_view text) {
  Mac mac{};
  if (text.size() != 17) {
    return std::nullopt;
  }
  for (size_t i = 0; i < 6; ++i) {
    if (!is_hex(text[3 * i]) || !is_hex(text[3 * i + 1]) || (i < 5 && text[3 * i + 2] != ':')) {
      return std::nullopt;
    }
    mac[i] = hex_byte(text.substr(3 * i, 2));
  }
  return mac;
}

bool is_private(const uint8_t* v4) {
  return v4[0] == 10 || v4[0] == 127 || v4[0] == 0 || v4[0] == 255 || (v4[0] == 192 && v4[1] == 168) ||
         (v4[0] == 172 && v4[1] >= 16 && v4[1] < 32) || (v4[0] == 169 && v4[1] == 254) || v4[0] >= 224 ||
         (v4[0] == 100 && v4[1] >= 64 && v4[1] < 128);
}

class Redactor {
 public:
  explicit Redactor(const Recording& recording) {
    size_t number = 1;
    for (const std::string& host : recording.hosts()) {
      const std::string bare = host.substr(host.find('@') + 1);
      const std::string other = fmt::format("host{}", number++);
      hosts_.emplace_back(host, other);
      hosts_.emplace_back(bare, other);
    }
    std::ranges::stable_sort(hosts_, std::ranges::greater{}, [](const auto& one) { return one.first.size(); });
  }

  std::string host(const std::string& name) const {
    const auto found = std::ranges::find(hosts_, name, &std::pair<std::string, std::string>::first);
    return found == hosts_.end() ? name : found->second;
  }

  std::string text(std::string_view text) {
    std::string out;
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      out += line(text.substr(0, end));
      out += end < text.size() ? "\n" : "";
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return out;
  }

 private:
  std::string line(std::string_view whole) {
    const size_t colon = whole.find(':');
    if (colon != std::string_view::npos) {
      const std::string_view head = whole.substr(0, colon);
      const bool is_name = std::ranges::any_of(kNameKeys, [&](std::string_view key) { return head.ends_with(key); });
      const std::string_view value = trimmed(whole.substr(colon + 1));
      if (is_name && !value.empty()) {
        const std::string known = host(std::string(value));
        return fmt::format("{}{}{}", whole.substr(0, colon + 1), head.starts_with('/') ? "" : " ",
                           known != value ? known : fmt::format("id-{}", number_in(ids_, std::string(value))));
      }
      if (head.starts_with('/')) {  // PATH:VALUE: what follows the colon begins anew
        return fmt::format("{}:{}", replaced(head), replaced(whole.substr(colon + 1)));
      }
    }
    return without_secrets(replaced(whole));
  }

  std::string replaced(std::string_view whole) {
    std::string out;
    for (size_t i = 0; i < whole.size();) {
      i += std::max<size_t>(replace_at(whole, i, out), 1);
    }
    return out;
  }

  /// Appends what stands for the thing that begins at `i`, and says how long it was.
  size_t replace_at(std::string_view whole, size_t i, std::string& out) {
    if (i == 0 || !is_word(whole[i - 1])) {
      size_t end = i;
      while (end < whole.size() &&
             (is_hex(whole[end]) || whole[end] == ':' || whole[end] == '.' || whole[end] == '-')) {
        ++end;
      }
      // What follows may look like a part of it: "fe80::1: icmp_seq", "10.0.0.1:32323".
      for (size_t length = end - i; length >= 2; --length) {
        const bool is_end = i + length == whole.size() || !is_word(whole[i + length]);
        if (is_end && replace_number(whole.substr(i, length), out)) {
          return length;
        }
        if (end - i - length >= kMostTail) {
          break;
        }
      }
      size_t user = i;
      while (user < whole.size() && is_word(whole[user])) {
        ++user;
      }
      if (user > i && user + 1 < whole.size() && whole[user] == '@' && is_word(whole[user + 1])) {
        out += fmt::format("user{}@", number_in(users_, std::string(whole.substr(i, user - i))));
        return user + 1 - i;
      }
      for (const auto& [name, other] : hosts_) {
        const bool is_it = whole.substr(i, name.size()) == name &&
                           (i + name.size() == whole.size() || !is_word(whole[i + name.size()]));
        if (is_it && !name.empty() && (i == 0 || whole[i - 1] != '.')) {
          out += other;
          size_t length = name.size();  // and its domain
          while (i + length + 1 < whole.size() && whole[i + length] == '.' && is_word(whole[i + length + 1])) {
            ++length;
            while (i + length < whole.size() && is_word(whole[i + length])) {
              ++length;
            }
          }
          return length;
        }
      }
    }
    for (const std::string_view home : {"/home/", "/Users/"}) {
      if (whole.substr(i, home.size()) == home) {
        const size_t begin = i + home.size();
        const size_t end = std::min(whole.find_first_of("/ :'\"", begin), whole.size());
        out += fmt::format("{}user{}", home, number_in(users_, std::string(whole.substr(begin, end - begin))));
        return end - i;
      }
    }
    out += whole[i];
    return 1;
  }

  /// An address of any kind, a GUID or UUID: appends another one.
  bool replace_number(std::string_view text, std::string& out) {
    if (const auto mac = mac_of(text)) {
      out += mac_text(other_mac(*mac));
      return true;
    }
    if (text.size() == 36 && std::ranges::count(text, '-') == 4 && text[8] == '-') {
      out += fmt::format("00000000-0000-4000-8000-{:012x}", number_in(ids_, std::string(text)));
      return true;
    }
    if (text.size() == 19 && std::ranges::count(text, ':') == 3) {  // a GUID, xxxx:xxxx:xxxx:xxxx
      out += guid_text(other_guid(text));
      return true;
    }
    uint8_t bytes[16];
    const std::string copy(text);
    if (::inet_pton(AF_INET, copy.c_str(), bytes) == 1) {
      out += other_ipv4(bytes, copy);
      return true;
    }
    if (std::ranges::count(text, ':') >= 2 && ::inet_pton(AF_INET6, copy.c_str(), bytes) == 1) {
      out += other_ipv6(bytes, copy);
      return true;
    }
    return false;
  }

  Mac other_mac(const Mac& mac) {
    const Mac none{};
    Mac all;
    all.fill(0xff);
    if (mac == none || mac == all) {
      return mac;
    }
    const uint64_t number = number_in(macs_, mac_text(mac));
    return {2, 0, 0, 0, static_cast<uint8_t>(number >> 8U), static_cast<uint8_t>(number)};
  }

  static std::string mac_text(const Mac& mac) { return fmt::format("{:02x}", fmt::join(mac, ":")); }

  uint64_t other_guid(std::string_view text) {
    return uint64_t{0x0200'0000'0000'0000} + number_in(ids_, std::string(text));
  }

  static std::string guid_text(uint64_t guid) {
    return fmt::format("{:04x}:{:04x}:{:04x}:{:04x}", guid >> 48U, (guid >> 32U) & 0xffffU, (guid >> 16U) & 0xffffU,
                       guid & 0xffffU);
  }

  std::string other_ipv4(uint8_t* bytes, const std::string& text) {
    if (is_private(bytes)) {
      return text;
    }
    return fmt::format("198.51.100.{}", number_in(public_v4_, text) % 256);
  }

  /// Its lower half comes from a MAC, or is as good as one.
  std::string other_ipv6(uint8_t* bytes, const std::string& text) {
    constexpr uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    const bool is_long = text.size() == 39;  // as sysfs writes GIDs
    if (std::memcmp(bytes, kMapped, sizeof kMapped) == 0) {
      char v4[INET_ADDRSTRLEN];
      ::inet_ntop(AF_INET, bytes + 12, v4, sizeof v4);
      const std::string other = other_ipv4(bytes + 12, v4);
      ::inet_pton(AF_INET, other.c_str(), bytes + 12);
      return ipv6_text(bytes, is_long);
    }
    const bool is_fe80 = bytes[0] == 0xfe && (bytes[1] & 0xc0U) == 0x80;
    const bool is_ours = bytes[0] == 0xfd || bytes[0] == 0xfc || bytes[0] == 0xff || is_fe80;
    const bool is_small = std::all_of(bytes + 8, bytes + 14, [](uint8_t one) { return one == 0; });
    if (!is_ours && !std::all_of(bytes, bytes + 8, [](uint8_t one) { return one == 0; })) {
      const uint64_t number = number_in(prefixes_, std::string(reinterpret_cast<char*>(bytes), 8));
      const uint8_t documentation[8] = {
          0x20, 0x01, 0x0d, 0xb8, 0, 0, static_cast<uint8_t>(number >> 8U), static_cast<uint8_t>(number)};
      std::memcpy(bytes, documentation, sizeof documentation);
    }
    if (!is_small) {
      if (bytes[11] == 0xff && bytes[12] == 0xfe) {
        const Mac mac =
            other_mac({static_cast<uint8_t>(bytes[8] ^ 2U), bytes[9], bytes[10], bytes[13], bytes[14], bytes[15]});
        const uint8_t made[8] = {static_cast<uint8_t>(mac[0] ^ 2U), mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
        std::memcpy(bytes + 8, made, sizeof made);
      } else {
        const uint64_t number = number_in(ids_, std::string(reinterpret_cast<char*>(bytes) + 8, 8));
        const uint8_t made[8] = {2, 0, 0, 0, 0, 0, static_cast<uint8_t>(number >> 8U), static_cast<uint8_t>(number)};
        std::memcpy(bytes + 8, made, sizeof made);
      }
    }
    return ipv6_text(bytes, is_long);
  }

  static std::string ipv6_text(const uint8_t* bytes, bool is_long) {
    if (is_long) {
      std::string text;
      for (size_t i = 0; i < 16; i += 2) {
        text += fmt::format("{}{:02x}{:02x}", i == 0 ? "" : ":", bytes[i], bytes[i + 1]);
      }
      return text;
    }
    char text[INET6_ADDRSTRLEN];
    ::inet_ntop(AF_INET6, bytes, text, sizeof text);
    return text;
  }

  /// NAME=VALUE whose name speaks of a secret.
  static std::string without_secrets(std::string line) {
    const size_t equals = line.find('=');
    if (equals == std::string::npos || line.find(' ') < equals) {
      return line;
    }
    for (const char* part : {"KEY", "TOKEN", "SECRET", "PASS", "CRED", "AUTH", "COOKIE", "SESSION"}) {
      if (contains(std::string_view(line).substr(0, equals), part)) {
        return line.substr(0, equals + 1) + "(removed)";
      }
    }
    const size_t scheme = line.find("://");  // https://user:password@host
    const size_t at = scheme == std::string::npos ? scheme : line.find('@', scheme);
    return at == std::string::npos ? line : line.substr(0, scheme + 3) + "(removed)" + line.substr(at);
  }

  static uint64_t number_in(std::map<std::string, uint64_t>& known, const std::string& text) {
    return known.try_emplace(text, known.size() + 1).first->second;
  }

  std::vector<std::pair<std::string, std::string>> hosts_;  // longer names first
  std::map<std::string, uint64_t> macs_, ids_, users_, public_v4_, prefixes_;
};

}  // namespace

Recording redacted(const Recording& recording) {
  Redactor redactor(recording);
  Recording out;
  for (const Reading& one : recording.readings) {
    out.readings.push_back(
        {redactor.host(one.host), redactor.text(one.source), redactor.text(one.text), redactor.text(one.problem)});
  }
  return out;
}

}  // namespace ringbolt::tools::doctor
