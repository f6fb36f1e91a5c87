#include "device/management_services.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <iterator>
#include <new>
#include <sstream>

#include "base/clock.h"
#include "base/folder.h"
#include "base/lock_guard.h"
#include "base/locked_file.h"

namespace ringbolt::device {
namespace {

constexpr std::string_view kSuffix = ".services";
/// Some perftest programs (ib_write_bw -R -q 4) sleep for a second between their two listeners.
constexpr uint64_t kClosedKeptNs = 2'000'000'000;
constexpr size_t kMaxFileBytes = 4U << 20U;
// Who wants to bind waits for his turn; others hold the lock for microseconds, unless one was stopped just then.
constexpr const char* kLock = "/services.order";
constexpr uint64_t kPatienceMs = 1'000;

std::string hex(const wire::Address& address) {
  std::string text;
  for (const uint8_t byte : address) {
    text += fmt::format("{:02x}", byte);
  }
  return text;
}

bool read_hex(std::string_view text, wire::Address& address) {
  if (text.size() != 2 * address.size()) {
    return false;
  }
  for (size_t i = 0; i < address.size(); ++i) {
    const char* digits = text.data() + 2 * i;
    if (std::from_chars(digits, digits + 2, address[i], 16).ptr != digits + 2) {
      return false;
    }
  }
  return true;
}

bool read_service(std::istringstream& words, Service& service) {
  std::string id;
  std::string address;
  std::string flags;
  std::string excess;
  if (!(words >> id >> address >> flags) || (words >> excess)) {
    return false;
  }
  if (id.size() != 16 || std::from_chars(id.data(), id.data() + 16, service.service_id, 16).ptr != id.data() + 16) {
    return false;
  }
  const std::array<std::pair<char, bool*>, 5> known{{{'4', &service.is_ipv4},
                                                     {'*', &service.is_any},
                                                     {'o', &service.is_family_only},
                                                     {'r', &service.is_reusable},
                                                     {'l', &service.is_listening}}};
  if (flags.size() != known.size()) {
    return false;
  }
  for (size_t i = 0; i < known.size(); ++i) {
    if (flags[i] != known[i].first && flags[i] != '-') {
      return false;
    }
    *known[i].second = flags[i] != '-';
  }
  return read_hex(address, service.address);
}

/// Both stand for one host: they share a GID. A process without GIDs is on the host of everybody.
bool is_same_host(const std::vector<wire::Address>& one, const std::vector<wire::Address>& other) {
  return one.empty() || other.empty() ||
         std::ranges::any_of(one, [&](const auto& gid) { return std::ranges::find(other, gid) != other.end(); });
}

}  // namespace

bool Service::accepts(uint64_t id, const wire::Address& destination) const {
  if (id != service_id || !is_listening) {
    return false;
  }
  if (!is_any) {
    return address == destination;
  }
  return wire::is_ipv4(destination) ? is_ipv4 || !is_family_only : !is_ipv4;
}

int conflict(const Service& wanted, const Service& other, bool may_reuse) {
  if (wanted.service_id != other.service_id || (may_reuse && wanted.is_reusable && other.is_reusable)) {
    return 0;
  }
  if (wanted.is_family_only && other.is_family_only && wanted.is_ipv4 != other.is_ipv4) {
    return 0;
  }
  if (wanted.is_any || other.is_any) {
    return EADDRNOTAVAIL;
  }
  return wanted.address == other.address ? EADDRINUSE : 0;
}

std::string emit(const ServiceFile& file) {
  std::string text = "ringbolt-services 1\n";
  for (const wire::Address& gid : file.gids) {
    text += fmt::format("gid {}\n", hex(gid));
  }
  for (const Service& one : file.services) {
    text += fmt::format("service {:016x} {} {}{}{}{}{}\n", one.service_id, hex(one.address), one.is_ipv4 ? '4' : '-',
                        one.is_any ? '*' : '-', one.is_family_only ? 'o' : '-', one.is_reusable ? 'r' : '-',
                        one.is_listening ? 'l' : '-');
  }
  for (const ClosedService& one : file.closed) {
    text += fmt::format("closed {:016x} {}\n", one.service_id, one.closed_ns);
  }
  return text;
}

std::optional<ServiceFile> parse_services(const std::string& text) {
  std::istringstream lines(text);
  lines.exceptions(std::ios::badbit);  // want of memory is thrown, and not taken for a bad line
  std::string line;
  if (!std::getline(lines, line) || line != "ringbolt-services 1") {
    return std::nullopt;
  }
  ServiceFile file;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    words.exceptions(std::ios::badbit);
    std::string kind;
    std::string value;
    Service service;
    wire::Address gid{};
    words >> kind;
    if (kind == "gid" && words >> value && read_hex(value, gid)) {
      file.gids.push_back(gid);
    } else if (kind == "service" && read_service(words, service)) {
      file.services.push_back(service);
    } else if (ClosedService closed;
               kind == "closed" && words >> std::hex >> closed.service_id >> std::dec >> closed.closed_ns) {
      file.closed.push_back(closed);
    } else {
      return std::nullopt;
    }
  }
  return file;
}

ServiceBook::ServiceBook(std::string slots_directory, uint32_t slot)
    : directory_(std::move(slots_directory)), slot_(slot) {}

void ServiceBook::set_gids(std::vector<wire::Address> gids) {
  const base::LockGuard guard(mutex_);
  own_.gids = std::move(gids);
  if (!own_.services.empty()) {
    static_cast<void>(write_file());  // where it can't be, others go on with the addresses of before
  }
}

int ServiceBook::bind(const Service& service, const IsAlive& is_alive) { return change(service, true, is_alive); }

int ServiceBook::listen(uint64_t token, const IsAlive& is_alive) {
  Service service;
  {
    const base::LockGuard guard(mutex_);
    const auto found = std::ranges::find(own_.services, token, &Service::token);
    if (found == own_.services.end()) {
      return EINVAL;
    }
    service = *found;
  }
  service.is_listening = true;
  return change(service, false, is_alive);
}

void ServiceBook::unbind(uint64_t token) {
  const base::LockGuard guard(mutex_);
  const auto found = std::ranges::find(own_.services, token, &Service::token);
  if (found == own_.services.end()) {
    return;
  }
  const uint64_t now = base::now_ns();
  std::erase_if(own_.closed, [&](const ClosedService& one) { return now > one.closed_ns + kClosedKeptNs; });
  const Service ended = *found;
  own_.services.erase(found);
  try {
    if (ended.is_listening) {
      own_.closed.push_back({ended.service_id, now});
    }
    static_cast<void>(write_file());
  } catch (const std::bad_alloc&) {
    // As where it can't be written: a line too many is harmless, the connection manager refuses.
  }
}

int ServiceBook::change(Service service, bool is_bind, const IsAlive& is_alive) {
  const base::LockGuard guard(mutex_);
  // Between processes: two that bind the same id at a time must not both find it free.
  const base::LockedFile lock(AT_FDCWD, directory_ + kLock, kPatienceMs);
  if (!lock.is_held()) {
    return lock.error() == EWOULDBLOCK ? EBUSY : lock.error();
  }
  if (const int error = conflict_with_own(service, is_bind)) {
    return error;
  }
  if (const int error = conflict_with_others(service, is_bind, is_alive)) {
    return error;
  }
  std::vector<Service> before = own_.services;
  try {
    std::erase_if(own_.services, [&](const Service& one) { return one.token == service.token; });
    own_.services.push_back(service);
    const int error = write_file();
    if (error != 0) {
      own_.services = std::move(before);  // nobody else knows of it, and the program believes that it has nothing
    }
    return error;
  } catch (const std::bad_alloc&) {
    own_.services = std::move(before);
    return ENOMEM;
  }
}

int ServiceBook::conflict_with_own(const Service& service, bool is_bind) const {
  for (const Service& one : own_.services) {
    if (one.token != service.token) {
      if (const int error = conflict(service, one, is_bind)) {
        return error;
      }
    }
  }
  return 0;
}

int ServiceBook::conflict_with_others(const Service& service, bool is_bind, const IsAlive& is_alive) const {
  for (const Other& other : others()) {
    if (!is_same_host(own_.gids, other.file.gids)) {
      continue;
    }
    for (const Service& one : other.file.services) {
      const int error = conflict(service, one, is_bind);
      if (error != 0 && is_alive(other.slot)) {
        return error;
      }
    }
  }
  return 0;
}

std::vector<ServiceBook::Other> ServiceBook::others() const {
  std::vector<Other> found;
  const int error = base::each_name_in(directory_.c_str(), [&](std::string_view name) {
    uint32_t slot = 0;
    if (!name.ends_with(kSuffix) ||
        std::from_chars(name.data(), name.data() + name.size(), slot).ptr !=
            name.data() + name.size() - kSuffix.size() ||
        slot == slot_) {
      return;
    }
    std::ifstream in(directory_ + "/" + std::string(name), std::ios::binary);
    std::string text(std::istreambuf_iterator<char>(in), {});
    auto file = text.size() > kMaxFileBytes ? std::nullopt : parse_services(text);
    if (file) {
      found.push_back({slot, std::move(*file)});
    }
  });
  if (error == ENOMEM) {
    throw std::bad_alloc();  // who the others are is not known then
  }
  return found;
}

std::vector<uint32_t> ServiceBook::owners_of(uint64_t service_id, const wire::Address& destination,
                                             const std::optional<wire::Address>& gid) const {
  const auto has_gid = [&](const ServiceFile& file) {
    return !gid || std::ranges::find(file.gids, *gid) != file.gids.end();
  };
  const auto accepts = [&](const ServiceFile& file) {
    return has_gid(file) &&
           std::ranges::any_of(file.services, [&](const Service& one) { return one.accepts(service_id, destination); });
  };
  std::vector<uint32_t> slots;
  {
    const base::LockGuard guard(mutex_);
    if (accepts(own_)) {
      slots.push_back(slot_);
    }
  }
  for (const Other& other : others()) {
    if (accepts(other.file)) {
      slots.push_back(other.slot);
    }
  }
  return slots;
}

bool ServiceBook::is_between_listeners(uint64_t service_id, uint64_t now_ns) const {
  const auto closed_lately = [&](const ServiceFile& file) {
    return std::ranges::any_of(file.closed, [&](const ClosedService& one) {
      // The port number is enough: perftest connects over TCP's port space first, then over UDP's.
      return static_cast<uint16_t>(one.service_id) == static_cast<uint16_t>(service_id) &&
             now_ns < one.closed_ns + kClosedKeptNs;
    });
  };
  {
    const base::LockGuard guard(mutex_);
    if (closed_lately(own_)) {
      return true;
    }
  }
  return std::ranges::any_of(others(), [&](const Other& other) { return closed_lately(other.file); });
}

/// Written beside it and renamed, so that readers find the old text or the new one.
int ServiceBook::write_file() const {
  const std::string path = fmt::format("{}/{}{}", directory_, slot_, kSuffix);
  const std::string fresh = path + ".new";
  const std::string text = emit(own_);
  {
    const base::UniqueFd out(open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!out.is_open()) {
      return errno;
    }
    errno = 0;
    if (write(out.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
      const int error = errno;
      unlink(fresh.c_str());
      return error != 0 ? error : ENOSPC;
    }
  }
  return rename(fresh.c_str(), path.c_str()) == 0 ? 0 : errno;
}

void ServiceBook::leave() {
  const base::LockGuard guard(mutex_);
  own_.services.clear();
  if (unlink(fmt::format("{}/{}{}", directory_, slot_, kSuffix).c_str()) != 0) {
    return;  // it has bound nothing
  }
  // Who leaves takes the lock's file along. If others want it just now it stays for them.
  if (const base::LockedFile lock(AT_FDCWD, directory_ + kLock, 0); lock.is_held()) {
    static_cast<void>(lock.remove());
  }
}

}  // namespace ringbolt::device
