#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string_view>
#include <thread>

#include "cases.h"

namespace ringbolt::test {
namespace {

struct Field {
  const char* name;
  size_t offset;
  size_t bytes;
};

#define RINGBOLT_FIELD(Type, name) \
  Field { #name, offsetof(Type, name), sizeof(Type::name) }

std::vector<Field> fields_of(int version) {
  using V8 = abi::PropertiesV8;
  using V9 = abi::PropertiesV9;
  using V12 = abi::PropertiesV12;
  if (version == 8) {
    return {
        RINGBOLT_FIELD(V8, name),        RINGBOLT_FIELD(V8, pci_path),        RINGBOLT_FIELD(V8, guid),
        RINGBOLT_FIELD(V8, ptr_support), RINGBOLT_FIELD(V8, reg_is_global),   RINGBOLT_FIELD(V8, speed),
        RINGBOLT_FIELD(V8, port),        RINGBOLT_FIELD(V8, latency),         RINGBOLT_FIELD(V8, max_comms),
        RINGBOLT_FIELD(V8, max_recvs),   RINGBOLT_FIELD(V8, net_device_type), RINGBOLT_FIELD(V8, net_device_version)};
  }
  std::vector<Field> fields = {RINGBOLT_FIELD(V9, name),
                               RINGBOLT_FIELD(V9, pci_path),
                               RINGBOLT_FIELD(V9, guid),
                               RINGBOLT_FIELD(V9, ptr_support),
                               RINGBOLT_FIELD(V9, reg_is_global),
                               RINGBOLT_FIELD(V9, force_flush),
                               RINGBOLT_FIELD(V9, speed),
                               RINGBOLT_FIELD(V9, port),
                               RINGBOLT_FIELD(V9, latency),
                               RINGBOLT_FIELD(V9, max_comms),
                               RINGBOLT_FIELD(V9, max_recvs),
                               RINGBOLT_FIELD(V9, net_device_type),
                               RINGBOLT_FIELD(V9, net_device_version),
                               RINGBOLT_FIELD(V9, ndevs)};
  if (version == 12) {
    fields.insert(fields.end(), {RINGBOLT_FIELD(V12, devs), RINGBOLT_FIELD(V12, max_p2p_bytes),
                                 RINGBOLT_FIELD(V12, max_coll_bytes), RINGBOLT_FIELD(V12, max_multi_request_size),
                                 RINGBOLT_FIELD(V12, rail_id), RINGBOLT_FIELD(V12, plane_id)});
    return fields;
  }
  fields.insert(fields.end(),
                {RINGBOLT_FIELD(V9, devs), RINGBOLT_FIELD(V9, max_p2p_bytes), RINGBOLT_FIELD(V9, max_coll_bytes)});
  if (version == 11) {
    fields.push_back(RINGBOLT_FIELD(abi::PropertiesV11, max_multi_request_size));
  }
  return fields;
}

using Raw = std::array<unsigned char, sizeof(abi::PropertiesV12) + 64>;

/// Into memory of 0xa5, then of 0x5a: a byte that is not written differs.
Raw read_properties(Plugin& plugin, int device) {
  Raw first;
  Raw second;
  first.fill(0xa5);
  second.fill(0x5a);
  expect(plugin.properties(device, first.data()), "getProperties");
  expect(plugin.properties(device, second.data()), "getProperties");
  for (const Field& field : fields_of(plugin.version())) {
    if (std::memcmp(first.data() + field.offset, second.data() + field.offset, field.bytes) != 0) {
      throw Failure("v" + std::to_string(plugin.version()) + ": getProperties leaves " + field.name +
                    " unset, or gives another value the second time");
    }
  }
  if (std::any_of(first.begin() + static_cast<std::ptrdiff_t>(plugin.properties_bytes()), first.end(),
                  [](unsigned char byte) { return byte != 0xa5; })) {
    throw Failure("getProperties writes behind the " + std::to_string(plugin.properties_bytes()) + " bytes of v" +
                  std::to_string(plugin.version()));
  }
  return first;
}

/// Throws Failure unless `field` of v`version` is as it should be.
void check(bool holds, int version, const std::string& field, const std::string& found) {
  if (!holds) {
    throw Failure("v" + std::to_string(version) + ": " + field + " is " + found);
  }
}

/// The fields that all versions have, by any of the structs.
template <typename Properties>
void check_common(const Properties& found, int version) {
  check(found.name != nullptr && found.name[0] != '\0', version, "name", "empty");
  struct stat unused {};
  check(found.pci_path == nullptr ||
            (std::string_view(found.pci_path).starts_with("/sys/") && stat(found.pci_path, &unused) == 0),
        version, "pciPath", found.pci_path == nullptr ? "" : "'" + std::string(found.pci_path) + "', no path of sysfs");
  check((found.ptr_support & abi::kHostMemory) != 0 && (found.ptr_support & ~7) == 0, version, "ptrSupport",
        std::to_string(found.ptr_support));
  check(found.reg_is_global == 0 || found.reg_is_global == 1, version, "regIsGlobal",
        std::to_string(found.reg_is_global));
  check(found.speed > 0, version, "speed", std::to_string(found.speed));
  check(found.port >= 0 && found.port < 256, version, "port", std::to_string(found.port));
  check(std::isfinite(found.latency) && found.latency >= 0 && found.latency < 1e6F, version, "latency",
        std::to_string(found.latency));
  check(found.max_comms > 0, version, "maxComms", std::to_string(found.max_comms));
  check(found.max_recvs >= 1 && found.max_recvs <= 8, version, "maxRecvs", std::to_string(found.max_recvs));
  check(found.net_device_type == 0 && found.net_device_version == 0, version, "netDeviceType",
        std::to_string(found.net_device_type) + ", version " + std::to_string(found.net_device_version));
}

template <typename Properties>
void check_devices(const Properties& found, int version, int devices) {
  check(found.force_flush == 0 || found.force_flush == 1, version, "forceFlush", std::to_string(found.force_flush));
  const int most = static_cast<int>(std::size(found.devs));
  check(found.ndevs >= 1 && found.ndevs <= most, version, "vProps.ndevs", std::to_string(found.ndevs));
  for (int i = 0; i < found.ndevs; ++i) {
    check(found.devs[i] >= 0 && found.devs[i] < devices, version, "vProps.devs", std::to_string(found.devs[i]));
  }
  check(found.max_p2p_bytes >= 1 && found.max_p2p_bytes <= size_t{1} << 40U, version, "maxP2pBytes",
        std::to_string(found.max_p2p_bytes));
  check(found.max_coll_bytes >= 1 && found.max_coll_bytes <= size_t{1} << 40U, version, "maxCollBytes",
        std::to_string(found.max_coll_bytes));
}

template <typename Properties>
Properties typed(const Raw& raw) {
  Properties found{};
  std::memcpy(&found, raw.data(), sizeof found);
  return found;
}

void check_values(const Raw& raw, int version, int devices) {
  if (version == 8) {
    check_common(typed<abi::PropertiesV8>(raw), version);
  } else if (version == 12) {
    const auto found = typed<abi::PropertiesV12>(raw);
    check_common(found, version);
    check_devices(found, version, devices);
    check(found.max_multi_request_size == 1, version, "maxMultiRequestSize",
          std::to_string(found.max_multi_request_size));
  } else {
    const auto found = typed<abi::PropertiesV9>(raw);
    check_common(found, version);
    check_devices(found, version, devices);
    if (version == 11) {
      const int most = typed<abi::PropertiesV11>(raw).max_multi_request_size;
      check(most == 1, version, "maxMultiRequestSize", std::to_string(most));
    }
  }
}

/// NCCL asks from several threads at once: a static buffer in the plugin would mix their answers.
void ask_from_threads(Plugin& plugin, int device, const Raw& wanted) {
  std::array<std::string, 4> problems;
  std::vector<std::thread> threads;
  for (std::string& problem : problems) {
    threads.emplace_back([&] {
      try {
        for (int i = 0; i < 500 && problem.empty(); ++i) {
          if (read_properties(plugin, device) != wanted) {
            problem = "getProperties gives other values to another thread";
          }
        }
      } catch (const Failure& failure) {
        problem = failure.what();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const std::string& problem : problems) {
    if (!problem.empty()) {
      throw Failure(problem);
    }
  }
}

void ask_all(Rank& rank, int version) {
  Plugin plugin(rank.options().plugin, version, rank.board());
  void* context = nullptr;
  expect(plugin.init(&context, 1), "init");
  int devices = 0;
  expect(plugin.devices(&devices), "devices");
  check(devices >= 1, version, "the number of devices", std::to_string(devices));
  std::set<std::string> names;
  std::set<uint64_t> guids;
  for (int device = 0; device < devices; ++device) {
    const Raw raw = read_properties(plugin, device);
    check_values(raw, version, devices);
    const auto common = typed<abi::PropertiesV8>(raw);  // its beginning is that of all
    check(names.insert(common.name).second, version, "a second device's name", common.name);
    check(guids.insert(common.guid).second, version, "a second device's guid", std::to_string(common.guid));
    ask_from_threads(plugin, device, raw);
  }
  Raw unused;
  unused.fill(0);
  for (const int wrong : {-1, devices}) {
    check(plugin.properties(wrong, unused.data()) != abi::kSuccess, version,
          "getProperties of device " + std::to_string(wrong), "a success");
  }
  expect(plugin.finalize(context), "finalize");
}

/// All tables that the library exports, one after the other, unless one is asked for.
void properties(Rank& rank) {
  std::string versions;
  for (const int version : exported_versions(rank.options().plugin)) {
    if (rank.options().api == 0 || rank.options().api == version) {
      rank.step("read properties");
      ask_all(rank, version);
      versions += (versions.empty() ? "v" : " v") + std::to_string(version);
    }
  }
  check(!versions.empty(), rank.options().api, "the table", "missing");
  rank.note(versions);
}

}  // namespace

std::vector<Case> properties_cases() {
  return {{.name = "properties",
           .asserts = "every field set, sound and stable, from 4 threads, in all versions",
           .run = properties,
           .loads_itself = true}};
}

}  // namespace ringbolt::test
