# The target `installed`: all that `cmake --install` installs, which is what README and docs use. Neither tests nor
# benchmarks belong to it.
add_custom_target(installed)

if(RINGBOLT_STRIP)
  install(CODE "set(CMAKE_INSTALL_DO_STRIP ON)")  # before the targets' own rules
endif()

# ringbolt_install(<target> <words for install(TARGETS)>...)
function(ringbolt_install target)
  install(TARGETS ${target} ${ARGN})
  add_dependencies(installed ${target})
endfunction()
