#include "doctor/redact.h"

#include <arpa/inet.h>
#include <netinet/ether.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "doctor/facts.h"

namespace ringbolt::tools::doctor {
namespace {

/// Before the colon of a line whose value is a name or number of one machine.
constexpr std::string_view kNameKeys[] = {
    "Serial Number", "Serial Number (system)", "Hardware UUID", "board_id", "Device Name", "/device_name"};
/// In the name of a variable whose value is a secret.
constexpr std::string_view kSecretNames[] = {"KEY", "TOKEN", "SECRET", "PASS", "CRED", "AUTH", "COOKIE", "SESSION"};
/// ":32323"
constexpr size_t kMostTail = 7;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; }
bool is_of_number(char c) {
  return std::isxdigit(static_cast<unsigned char>(c)) != 0 || c == ':' || c == '.' || c == '-';
}

/// How many characters at the beginning are so.
size_t length_of(std::string_view text, bool (*is)(char)) {
  return static_cast<size_t>(std::ranges::find_if_not(text, is) - text.begin());
}

/// A word does not go on at `index`.
bool ends_at(std::string_view text, size_t index) { return index >= text.size() || !is_word(text[index]); }

bool is_private(const uint8_t* v4) {
  return v4[0] == 10 || v4[0] == 127 || v4[0] == 0 || v4[0] == 255 || (v4[0] == 192 && v4[1] == 168) ||
         (v4[0] == 172 && v4[1] >= 16 && v4[1] < 32) || (v4[0] == 169 && v4[1] == 254) || v4[0] >= 224 ||
         (v4[0] == 100 && v4[1] >= 64 && v4[1] < 128);
}

bool is_zero(const uint8_t* begin, const uint8_t* end) {
  return std::all_of(begin, end, [](uint8_t one) { return one == 0; });
}

/// As sysfs writes GIDs, or as all others do.
std::string ipv6_text(const uint8_t* bytes, bool is_long) {
  char text[INET6_ADDRSTRLEN];
  ::inet_ntop(AF_INET6, bytes, text, sizeof text);
  if (!is_long) {
    return text;
  }
  std::string full;
  for (size_t i = 0; i < 16; i += 2) {
    full += fmt::format("{}{:02x}{:02x}", i == 0 ? "" : ":", bytes[i], bytes[i + 1]);
  }
  return full;
}

/// NAME=VALUE whose name speaks of a secret, and https://user:password@host.
std::string without_secrets(std::string line) {
  const size_t equals = line.find('=');
  if (equals == std::string::npos || line.find(' ') < equals) {
    return line;
  }
  const std::string_view name = std::string_view(line).substr(0, equals);
  if (std::ranges::any_of(kSecretNames, [&](std::string_view part) { return contains(name, part); })) {
    return line.substr(0, equals + 1) + "(removed)";
  }
  const size_t scheme = line.find("://");
  const size_t at = scheme == std::string::npos ? scheme : line.find('@', scheme);
  return at == std::string::npos ? line : line.substr(0, scheme + 3) + "(removed)" + line.substr(at);
}

/// Numbers things by their bytes, each once, from 1 on.
class Numbers {
 public:
  uint64_t of(std::string_view thing) {
    return known_.try_emplace(std::string(thing), known_.size() + 1).first->second;
  }
  uint64_t of(const uint8_t* bytes, size_t count) { return of({reinterpret_cast<const char*>(bytes), count}); }
  /// Puts zeros in the place of `bytes`, and the number into the last two.
  void replace(uint8_t* bytes, size_t count) {
    const uint64_t number = of(bytes, count);
    std::fill(bytes, bytes + count, uint8_t{0});
    bytes[count - 2] = static_cast<uint8_t>(number >> 8U);
    bytes[count - 1] = static_cast<uint8_t>(number);
  }

 private:
  std::map<std::string, uint64_t> known_;
};

/// What stands for what; each part is given the rest of a line and appends what stands for the thing that begins there.
class Redactor {
 public:
  explicit Redactor(const Recording& recording) {
    size_t number = 1;
    for (const std::string& host : recording.hosts()) {
      const std::string other = fmt::format("host{}", number++);
      hosts_.emplace_back(host, other);
      hosts_.emplace_back(host.substr(host.find('@') + 1), other);
    }
    std::ranges::stable_sort(hosts_, std::ranges::greater{}, [](const auto& one) { return one.first.size(); });
  }

  std::string host(const std::string& name) const {
    const auto found = std::ranges::find(hosts_, name, &std::pair<std::string, std::string>::first);
    return found == hosts_.end() ? name : found->second;
  }

  std::string text(std::string_view text) {
    std::string out;
    for (const std::string_view one : lines_of(text)) {
      out += line(one);
      out += one.end() < text.end() ? "\n" : "";
    }
    return out;
  }

 private:
  std::string line(std::string_view whole) {
    const size_t colon = std::min(whole.find(':'), whole.size());
    const std::string_view head = whole.substr(0, colon);
    const std::string value(trimmed(whole.substr(std::min(colon + 1, whole.size()))));
    const bool is_name = std::ranges::any_of(kNameKeys, [&](std::string_view key) { return head.ends_with(key); });
    if (is_name && !value.empty()) {
      const std::string known = host(value);
      return fmt::format("{}:{}{}", head, head.starts_with('/') ? "" : " ",
                         known != value ? known : fmt::format("id-{}", ids_.of(value)));
    }
    if (head.starts_with('/') && colon < whole.size()) {  // PATH:VALUE: what follows the colon begins anew
      return fmt::format("{}:{}", replaced(head), replaced(whole.substr(colon + 1)));
    }
    return without_secrets(replaced(whole));
  }

  std::string replaced(std::string_view whole) {
    std::string out;
    for (size_t i = 0; i < whole.size();) {
      const std::string_view rest = whole.substr(i);
      const char before = i == 0 ? ' ' : whole[i - 1];
      size_t length = is_word(before) ? 0 : replace_word(rest, before, out);
      length = length != 0 ? length : replace_home(rest, out);
      if (length == 0) {
        out += rest.front();
      }
      i += std::max<size_t>(length, 1);
    }
    return out;
  }

  /// Returns how long the thing was; 0: it is nothing that is replaced.
  size_t replace_word(std::string_view rest, char before, std::string& out) {
    // What follows may look like a part of it: "fe80::1: icmp_seq", "10.0.0.1:32323".
    const size_t most = length_of(rest, is_of_number);
    for (size_t length = most; length >= 2 && most - length <= kMostTail; --length) {
      const std::string other = ends_at(rest, length) ? other_number(rest.substr(0, length)) : "";
      if (!other.empty()) {
        out += other;
        return length;
      }
    }
    const size_t user = length_of(rest, is_word);
    if (user > 0 && user < rest.size() && rest[user] == '@' && !ends_at(rest, user + 1)) {
      out += fmt::format("user{}@", users_.of(rest.substr(0, user)));
      return user + 1;
    }
    return before == '.' ? 0 : replace_host(rest, out);
  }

  size_t replace_host(std::string_view rest, std::string& out) const {
    const auto found = std::ranges::find_if(hosts_, [&](const auto& one) {
      return !one.first.empty() && rest.starts_with(one.first) && ends_at(rest, one.first.size());
    });
    if (found == hosts_.end()) {
      return 0;
    }
    out += found->second;
    size_t length = found->first.size();  // and its domain
    while (length < rest.size() && rest[length] == '.' && !ends_at(rest, length + 1)) {
      length += 1 + length_of(rest.substr(length + 1), is_word);
    }
    return length;
  }

  size_t replace_home(std::string_view rest, std::string& out) {
    for (const std::string_view home : {"/home/", "/Users/"}) {
      if (rest.starts_with(home)) {
        const size_t end = std::min(rest.find_first_of("/ :'\"", home.size()), rest.size());
        out += fmt::format("{}user{}", home, users_.of(rest.substr(home.size(), end - home.size())));
        return end;
      }
    }
    return 0;
  }

  /// Of an address of any kind, a GUID or UUID; "" of anything else.
  std::string other_number(std::string_view text) {
    const std::string copy(text);
    uint8_t bytes[16];
    if (ether_addr mac{}; text.size() == 17 && ::ether_aton_r(copy.c_str(), &mac) != nullptr) {
      replace_mac(mac.ether_addr_octet);
      return fmt::format("{:02x}", fmt::join(mac.ether_addr_octet, ":"));
    }
    if (text.size() == 36 && std::ranges::count(text, '-') == 4 && text[8] == '-') {
      return fmt::format("00000000-0000-4000-8000-{:012x}", ids_.of(text));
    }
    if (text.size() == 19 && std::ranges::count(text, ':') == 3) {  // a GUID, xxxx:xxxx:xxxx:xxxx
      const uint64_t number = ids_.of(text);
      return fmt::format("0200:{:04x}:{:04x}:{:04x}", number >> 32U, (number >> 16U) & 0xffffU, number & 0xffffU);
    }
    if (::inet_pton(AF_INET, copy.c_str(), bytes) == 1) {
      replace_ipv4(bytes);
      return fmt::format("{}", fmt::join(bytes, bytes + 4, "."));
    }
    if (std::ranges::count(text, ':') >= 2 && ::inet_pton(AF_INET6, copy.c_str(), bytes) == 1) {
      replace_ipv6(bytes);
      return ipv6_text(bytes, text.size() == 39);
    }
    return "";
  }

  void replace_mac(uint8_t* mac) {
    const bool is_all_ones = std::all_of(mac, mac + 6, [](uint8_t one) { return one == 0xff; });
    if (!is_zero(mac, mac + 6) && !is_all_ones) {
      macs_.replace(mac, 6);
      mac[0] = 2;  // administered locally
    }
  }

  void replace_ipv4(uint8_t* v4) {
    if (!is_private(v4)) {
      const uint8_t documentation[4] = {198, 51, 100, static_cast<uint8_t>(public_v4_.of(v4, 4))};
      std::memcpy(v4, documentation, sizeof documentation);
    }
  }

  void replace_ipv6(uint8_t* bytes) {
    constexpr uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    if (std::memcmp(bytes, kMapped, sizeof kMapped) == 0) {
      return replace_ipv4(bytes + 12);
    }
    const bool is_fe80 = bytes[0] == 0xfe && (bytes[1] & 0xc0U) == 0x80;
    const bool is_ours = bytes[0] == 0xfd || bytes[0] == 0xfc || bytes[0] == 0xff || is_fe80;
    if (!is_ours && !is_zero(bytes, bytes + 8)) {
      prefixes_.replace(bytes, 8);
      const uint8_t documentation[4] = {0x20, 0x01, 0x0d, 0xb8};
      std::memcpy(bytes, documentation, sizeof documentation);
    }
    if (!is_zero(bytes + 8, bytes + 14)) {  // or else it is a small number, which names nobody
      replace_interface(bytes + 8);
    }
  }

  /// The lower half of an IPv6 address comes from a MAC, or is as good as one.
  void replace_interface(uint8_t* half) {
    if (half[3] == 0xff && half[4] == 0xfe) {
      uint8_t mac[6] = {static_cast<uint8_t>(half[0] ^ 2U), half[1], half[2], half[5], half[6], half[7]};
      replace_mac(mac);
      const uint8_t made[8] = {static_cast<uint8_t>(mac[0] ^ 2U), mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
      std::memcpy(half, made, sizeof made);
    } else {
      ids_.replace(half, 8);
      half[0] = 2;
    }
  }

  std::vector<std::pair<std::string, std::string>> hosts_;  // longer names first
  Numbers macs_, ids_, users_, public_v4_, prefixes_;
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
