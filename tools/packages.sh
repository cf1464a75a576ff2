# What tools/setup and tools/setup-targets share; sourced by both, in the root of the repository.

fail() {
  printf 'setup: %s\n' "$*" >&2
  exit 2
}

present() {
  case $1 in
    /*) [ -e "$1" ] ;;
    *) command -v "$1" >/dev/null ;;
  esac
}

# install_packages PACKAGE:PROOF...: the proof that a package is there is a command, or a file.
install_packages() {
  local missing=() entry
  for entry in "$@"; do
    present "${entry#*:}" || missing+=("${entry%%:*}")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null ||
    fail "missing: ${missing[*]}. This is no Debian; install what these packages hold, then run make again."
  local sudo=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null && sudo -n true 2>/dev/null ||
      fail "missing: ${missing[*]}. Run as root or with sudo: apt-get install ${missing[*]}"
    sudo=(sudo -n)
  fi
  echo "setup: installing ${missing[*]}"
  local log=build/logs/apt.log
  {
    "${sudo[@]}" apt-get update &&
      "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
  } >"$log" 2>&1 || {
    tail -n 5 "$log" >&2
    fail "apt-get could not install ${missing[*]}; is there a network? The whole log is $log"
  }
}
