// What the system allows programs: memory, device files, containers, sleep.
#include "doctor/check.h"

namespace ringbolt::tools::doctor {
namespace {

constexpr uint64_t kLeastKb = 1U << 20U;

/// "unlimited" is enough.
bool is_limit_below(const Value& limit, uint64_t least) { return limit.text != "unlimited" && limit.number() < least; }

constexpr Check kLimitChecks[] = {
    {"container-no-device", kError, kLinux, "an RDMA device has no file in /dev/infiniband",
     "the verbs library sees no device, and engines fall back to TCP", "device nodes",
     [](Probe& at, const Host& host) {
       const Value container = host.value("container");
       const Judgement told = at.given(host.has_card() && host.was_asked("device nodes"))
                                  .judge(!host.value("device nodes"), {host, "/dev/infiniband"},
                                         "sysfs shows a device, and there is no file to open it by")
                                  .seen("device nodes", "none");
       container ? told.seen(container).advise("start the container with --device=/dev/infiniband --network=host")
                 : told.step("modprobe ib_uverbs", "modprobe -r ib_uverbs");
     }},
    {"device-forbidden", kError, kLinux, "the user may not open an RDMA device", "ibv_open_device fails with EACCES",
     "device nodes",
     [](Probe& at, const Host& host) {
       for (const std::string_view line : lines_of(host.text("device nodes"))) {
         const bool is_wrong = contains(line, "may not be opened") && contains(line, "uverbs");
         at.judge(is_wrong && !at.has_found(host), {host, std::string(word_at(line, 0))}, "this user may not open it")
             .seen("device nodes", line)
             .step("chmod 0666 /dev/infiniband/uverbs*", "chmod 0660 /dev/infiniband/uverbs*")
             .advise("for good: the udev rules of rdma-core");
       }
     }},
    {"memlock-low", kError, kLinux, "programs may pin little memory", "registering memory fails with ENOMEM", "",
     [](Probe& at, const Host& host) {
       const Value limit = host.value("ulimit -l");
       const Value container = host.value("container");
       const Judgement told = at.given(limit, host.has_card())
                                  .judge(is_limit_below(limit, kLeastKb), {host, "memlock"}, "a program may pin {} MiB",
                                         limit.number() / 1024);
       container ? told.seen(container).advise("start the container with --ulimit memlock=-1 --cap-add=IPC_LOCK")
                 : told.step("printf '* - memlock unlimited\\n' > /etc/security/limits.d/rdma.conf",
                             "rm /etc/security/limits.d/rdma.conf")
                       .advise("log in anew; of a service: LimitMEMLOCK=infinity in its unit");
     }},
    {"contiguous-memory-none", kWarning, kLinux, "a Spark has no contiguous memory",
     "registering memory fails with ENOMEM", "system",
     [](Probe& at, const Host& host) {
       // A GB10 gives device memory from the kernel's contiguous area.
       const Value line = host.line_of("/proc/meminfo", line_with(host.file("/proc/meminfo").text, "CmaTotal"));
       const Value product = host.file("/sys/class/dmi/id/product_name");
       const std::string_view total = word_at(line.text, 1);
       at.given(line, contains(product.text, "spark") || contains(product.text, "GB10"))
           .judge(!total.empty() && number_of(total) == 0, {host, "CmaTotal"}, "there is no contiguous memory")
           .advise("add cma=256M to the kernel's command line and boot; one source tells of this");
     }},
    {"shm-small", kWarning, kLinux, "a container has little shared memory",
     "NCCL, PyTorch's loaders and Ringbolt's lanes end with SIGBUS or ENOSPC", "df -k /dev/shm",
     [](Probe& at, const Host& host) {
       const Value line = host.line("df -k /dev/shm", "/dev/shm");  // "tmpfs 65536 0 65536 0% /dev/shm"
       const uint64_t total_kb = number_of(word_at(line.text, 1));
       at.given(line, !word_at(line.text, 1).empty() && host.value("container"))
           .judge(total_kb < kLeastKb, {host, "/dev/shm"}, "it holds {} MiB", total_kb / 1024)
           .advise("start the container with --shm-size=8g or --ipc=host");
     }},
    {"machine-sleeps", kWarning, kLinux, "the machine goes to sleep", "all peers lose its queue pairs at once",
     "system",
     [](Probe& at, const Host& host) {
       const auto link = host.links.find("/etc/systemd/system/sleep.target");
       const bool is_masked = link != host.links.end() && link->second == "/dev/null";
       for (const auto& [path, text] : host.files_below("/etc/systemd/logind.conf")) {
         at.looked();
         for (const std::string_view line : lines_of(text)) {
           const std::string_view action = trimmed(line);
           at.judge(!is_masked && action.starts_with("IdleAction=") && action != "IdleAction=ignore" &&
                        action != "IdleAction=lock",
                    {host, "sleep"}, "the machine goes to sleep when nobody types")
               .seen(path, action)
               .step("systemctl mask sleep.target suspend.target", "systemctl unmask sleep.target suspend.target");
         }
       }
     }},
    {"open-files-low", kWarning, kAll, "programs may have few files open", "meeting many ranks fails with EMFILE", "",
     [](Probe& at, const Host& host) {
       const Value limit = host.value("ulimit -n");
       at.given(limit)
           .judge(is_limit_below(limit, 1024), {host, "nofile"}, "a program may have {} files open", limit.text)
           .step(By::shell, "ulimit -n 65536", "ulimit -n {}", limit.number())
           .advise("for good: a line `* - nofile 65536` in /etc/security/limits.d; on a Mac launchctl limit maxfiles");
     }},
    {"maps-low", kWarning, kLinux, "programs may have few mappings",
     "registering and giving back memory often ends with ENOMEM", "system",
     [](Probe& at, const Host& host) {
       constexpr uint64_t kUsual = 65530;
       const Value count = host.file("/proc/sys/vm/max_map_count");
       at.given(count)
           .judge(count.number() < kUsual, {host, "vm.max_map_count"}, "a process may have {} mappings", count.number())
           .step("sysctl -w vm.max_map_count={0}", "sysctl -w vm.max_map_count={1}", kUsual, count.number());
     }},
    {"dma-translated", kNote, kLinux, "a card's DMA is translated strictly",
     "small registrations and fast cards lose some of their speed", "interfaces",
     [](Probe& at, const Netdev& port) {
       const Value type = port.file("device/iommu_group/type");
       at.given(type, port.driver == "mlx5_core")
           .judge(type.text == "DMA", port, "every access of the card to memory is translated strictly")
           .advise("add iommu=pt to the kernel's command line and boot, if the machine trusts its cards");
     }},
};

}  // namespace

std::span<const Check> limit_checks() { return kLimitChecks; }

}  // namespace ringbolt::tools::doctor
