// What the system allows programs: memory, device files, containers, sleep.
#include <algorithm>

#include <fmt/format.h>

#include "doctor/check.h"

namespace ringbolt::tools::doctor {
namespace {

/// A card, whose memory must be pinned; software devices pin none.
bool has_card(const Host& host) {
  return std::ranges::any_of(host.devices, [](const Device& one) { return !one.pci.empty(); });
}

bool is_container(const Host& host) { return !trimmed(host.text("container")).empty(); }

void low_memlock(Probe& probe) {
  constexpr uint64_t kLeastKb = 1U << 20U;
  probe.each_host([&](const Host& host) {
    const std::string_view limit = trimmed(host.text("ulimit -l"));
    if (limit.empty() || !has_card(host)) {
      return;
    }
    probe.looked();
    if (limit != "unlimited" && number_of(limit) < kLeastKb) {
      Finding& found = probe.found(host, "memlock", fmt::format("a program may pin {} MiB", number_of(limit) / 1024))
                           .seen(host, "ulimit -l", limit);
      if (is_container(host)) {
        found.seen(host, "container", host.text("container"))
            .advise("start the container with --ulimit memlock=-1 --cap-add=IPC_LOCK");
      } else {
        found
            .step(host, "printf '* - memlock unlimited\\n' > /etc/security/limits.d/rdma.conf",
                  "rm /etc/security/limits.d/rdma.conf")
            .advise("log in anew; of a service: LimitMEMLOCK=infinity in its unit");
      }
    }
  });
}

void few_files(Probe& probe) {
  constexpr uint64_t kLeast = 1024;
  probe.each_host([&](const Host& host) {
    const std::string_view limit = trimmed(host.text("ulimit -n"));
    if (limit.empty()) {
      return;
    }
    probe.looked();
    if (limit != "unlimited" && number_of(limit) < kLeast) {
      probe.found(host, "nofile", fmt::format("a program may have {} files open", limit))
          .seen(host, "ulimit -n", limit)
          .step(host, "ulimit -n 65536", fmt::format("ulimit -n {}", number_of(limit)), By::shell)
          .advise("for good: a line `* - nofile 65536` in /etc/security/limits.d; on a Mac launchctl limit maxfiles");
    }
  });
}

void no_device_nodes(Probe& probe) {
  probe.each_host([&](const Host& host) {
    if (!has_card(host) || host.recording->find(host.name, "device nodes") == nullptr) {
      return;
    }
    probe.looked();
    if (trimmed(host.text("device nodes")).empty()) {
      Finding& found = probe.found(host, "/dev/infiniband", "sysfs shows a device, and there is no file to open it by")
                           .seen(host, "device nodes", "none");
      is_container(host) ? found.seen(host, "container", host.text("container"))
                               .advise("start the container with --device=/dev/infiniband --network=host")
                         : found.step(host, "modprobe ib_uverbs", "modprobe -r ib_uverbs");
    }
  });
}

void closed_device_nodes(Probe& probe) {
  probe.each_host([&](const Host& host) {
    for (const std::string_view line : lines_of(host.text("device nodes"))) {
      probe.looked();
      if (contains(line, "may not be opened") && contains(line, "uverbs")) {
        const std::string path(words_of(line).front());
        probe.found(host, path, "this user may not open it")
            .seen(host, "device nodes", line)
            .step(host, "chmod 0666 /dev/infiniband/uverbs*", "chmod 0660 /dev/infiniband/uverbs*")
            .advise("for good: the udev rules of rdma-core");
        return;
      }
    }
  });
}

/// "tmpfs 65536 0 65536 0% /dev/shm"
void small_shared_memory(Probe& probe) {
  constexpr uint64_t kLeastKb = 1U << 20U;
  probe.each_host([&](const Host& host) {
    const std::string_view line = line_with(host.text("df -k /dev/shm"), "/dev/shm");
    const auto words = words_of(line);
    if (words.size() < 2 || !is_container(host)) {
      return;
    }
    probe.looked();
    if (number_of(words[1]) < kLeastKb) {
      probe.found(host, "/dev/shm", fmt::format("it holds {} MiB", number_of(words[1]) / 1024))
          .seen(host, "df -k /dev/shm", line)
          .advise("start the container with --shm-size=8g or --ipc=host");
    }
  });
}

/// A GB10 gives device memory from the kernel's contiguous area.
void no_contiguous_memory(Probe& probe) {
  probe.each_host([&](const Host& host) {
    const std::string_view line = line_with(host.file("/proc/meminfo"), "CmaTotal");
    const bool is_spark = contains(host.file("/sys/class/dmi/id/product_name"), "spark") ||
                          contains(host.file("/sys/class/dmi/id/product_name"), "GB10");
    if (line.empty() || !is_spark) {
      return;
    }
    probe.looked();
    if (words_of(line).size() >= 2 && number_of(words_of(line)[1]) == 0) {
      probe.found(host, "CmaTotal", "there is no contiguous memory")
          .seen(host, "/proc/meminfo", line)
          .advise("add cma=256M to the kernel's command line and boot; one source tells of this");
    }
  });
}

void few_maps(Probe& probe) {
  const std::string path = "/proc/sys/vm/max_map_count";
  constexpr uint64_t kUsual = 65530;
  probe.each_host([&](const Host& host) {
    if (host.file(path).empty()) {
      return;
    }
    probe.looked();
    if (host.number(path) < kUsual) {
      probe.found(host, "vm.max_map_count", fmt::format("a process may have {} mappings", host.number(path)))
          .file(host, path)
          .step(host, fmt::format("sysctl -w vm.max_map_count={}", kUsual),
                fmt::format("sysctl -w vm.max_map_count={}", host.number(path)));
    }
  });
}

void translated_dma(Probe& probe) {
  probe.each_cabled([&](const Host& host, const Netdev& netdev) {
    const std::string path = fmt::format("/sys/class/net/{}/device/iommu_group/type", netdev.name);
    if (host.file(path).empty() || netdev.driver != "mlx5_core") {
      return;
    }
    probe.looked();
    if (trimmed(host.file(path)) == "DMA") {
      probe.found(host, netdev.name, "every access of the card to memory is translated strictly")
          .file(host, path)
          .advise("add iommu=pt to the kernel's command line and boot, if the machine trusts its cards");
    }
  });
}

/// "IdleAction=suspend" in logind.conf; a masked sleep.target leads to /dev/null.
void falling_asleep(Probe& probe) {
  probe.each_host([&](const Host& host) {
    const auto link = host.links.find("/etc/systemd/system/sleep.target");
    const bool is_masked = link != host.links.end() && link->second == "/dev/null";
    const std::string_view folder = "/etc/systemd/logind.conf";
    for (auto one = host.files.lower_bound(folder); one != host.files.end() && one->first.starts_with(folder); ++one) {
      probe.looked();
      for (const std::string_view line : lines_of(one->second)) {
        const std::string_view action = trimmed(line);
        if (!is_masked && action.starts_with("IdleAction=") && action != "IdleAction=ignore" &&
            action != "IdleAction=lock") {
          probe.found(host, "sleep", "the machine goes to sleep when nobody types")
              .seen(host, one->first, action)
              .step(host, "systemctl mask sleep.target suspend.target", "systemctl unmask sleep.target suspend.target");
        }
      }
    }
  });
}

constexpr Check kLimitChecks[] = {
    {"container-no-device", Severity::error, Platform::linux, "an RDMA device has no file in /dev/infiniband",
     "the verbs library sees no device, and engines fall back to TCP", "device nodes", no_device_nodes},
    {"device-forbidden", Severity::error, Platform::linux, "the user may not open an RDMA device",
     "ibv_open_device fails with EACCES", "device nodes", closed_device_nodes},
    {"memlock-low", Severity::error, Platform::linux, "programs may pin little memory",
     "registering memory fails with ENOMEM", "", low_memlock},
    {"contiguous-memory-none", Severity::warning, Platform::linux, "a Spark has no contiguous memory",
     "registering memory fails with ENOMEM", "system", no_contiguous_memory},
    {"shm-small", Severity::warning, Platform::linux, "a container has little shared memory",
     "NCCL, PyTorch's loaders and Ringbolt's lanes end with SIGBUS or ENOSPC", "df -k /dev/shm", small_shared_memory},
    {"machine-sleeps", Severity::warning, Platform::linux, "the machine goes to sleep",
     "all peers lose its queue pairs at once", "system", falling_asleep},
    {"open-files-low", Severity::warning, Platform::all, "programs may have few files open",
     "meeting many ranks fails with EMFILE", "", few_files},
    {"maps-low", Severity::warning, Platform::linux, "programs may have few mappings",
     "registering and giving back memory often ends with ENOMEM", "system", few_maps},
    {"dma-translated", Severity::note, Platform::linux, "a card's DMA is translated strictly",
     "small registrations and fast cards lose some of their speed", "interfaces", translated_dma},
};

}  // namespace

std::span<const Check> limit_checks() { return kLimitChecks; }

}  // namespace ringbolt::tools::doctor
