#include "setup.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

namespace ringbolt::guest {
namespace {

// The panic that follows the end of process 1 ends QEMU, and the host finds this line in the console's text.
[[noreturn]] void give_up(const std::string& what) {
  std::fprintf(stderr, "agent: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

void must(int result, const std::string& what) {
  if (result < 0) give_up(what);
}

void mount_at(const char* type, const char* where, const char* options = "") {
  must(::mount(type, where, type, 0, options), std::string("mount ") + type + " at " + where);
}

void load_modules() {
  std::ifstream order("/modules/order");
  for (std::string name; std::getline(order, name);) {
    const std::string path = "/modules/" + name;
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    must(file, path);
    const long result = ::syscall(SYS_finit_module, file, "", 0);
    if (result < 0 && errno != EEXIST) give_up("loading " + path);
    ::close(file);
  }
}

void enter_host_files() {
  ::mkdir("/host", 0755);
  must(::mount("host", "/host", "9p", MS_RDONLY, "trans=virtio,version=9p2000.L,cache=loose,msize=524288"),
       "mount the host's files by 9p");
  mount_at("devtmpfs", "/host/dev");
  mount_at("proc", "/host/proc");
  mount_at("sysfs", "/host/sys");
  mount_at("tmpfs", "/host/tmp");
  mount_at("tmpfs", "/host/run");
  must(::chdir("/host"), "enter the host's files");
  must(::mount(".", "/", nullptr, MS_MOVE, nullptr), "move the host's files to /");
  must(::chroot("."), "chroot");
  // Programs pin memory; devtmpfs has no folder for shared memory.
  ::mkdir("/dev/shm", 01777);
  mount_at("tmpfs", "/dev/shm");
}

}  // namespace

int set_up() {
  ::mkdir("/dev", 0755);
  mount_at("devtmpfs", "/dev");
  const int console = ::open("/dev/console", O_RDWR);
  for (int descriptor = 0; descriptor < 3 && console >= 0; ++descriptor) ::dup2(console, descriptor);
  load_modules();
  const int port = ::open("/dev/vport0p1", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  must(port, "/dev/vport0p1, the port to the host");
  enter_host_files();
  return port;
}

}  // namespace ringbolt::guest
