# Functions for scripts that install or package. Those that install need the root of the repository as the current folder.

fail() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

present() {
  case $1 in
    /*) [ -e "$1" ] ;;
    *) command -v "$1" >/dev/null ;;
  esac
}

# readme_programs README LANGUAGE FILE FOLDER: each block of the language as FOLDER/programN/FILE, with the output block that
# follows it as FOLDER/programN/expected.
readme_programs() {
  awk -v language="$2" -v file="$3" -v to="$4/program" '
    /^```/ { out = "" }
    out { print > out }
    $0 == "```" language { count += 1; folder = to count; system("mkdir -p " folder); out = folder "/" file }
    /^```text output$/ { out = folder "/expected" }' "$1"
}

# install_packages PACKAGE:PROOF...: the proof of an installed package is a command or a file.
install_packages() {
  local missing=() entry
  for entry in "$@"; do
    present "${entry#*:}" || missing+=("${entry%%:*}")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null ||
    fail "missing: ${missing[*]}. This is not Debian; install the software of these packages, then run make again."
  local sudo=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null && sudo -n true 2>/dev/null ||
      fail "missing: ${missing[*]}. Run as root or with sudo: apt-get install ${missing[*]}"
    sudo=(sudo -n)
  fi
  # apt's reports on descriptor 1 go to the log, and to the lines of attempt.
  attempt build/logs/apt.log "installing ${missing[*]}" apt_install ||
    fail "apt-get could not install ${missing[*]}; is there a network? The whole log is build/logs/apt.log"
}

apt_install() {
  "${sudo[@]}" apt-get update -q &&
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -yq --no-install-recommends \
      -o APT::Status-Fd=1 "${missing[@]}"
}

# install_group VENV GROUP: creates the virtual environment if it is missing, and installs the group of pyproject.toml with
# uv. pip installs uv. The hashes of all packages are in tools/requirements.lock.
install_group() {
  local venv=$1 group=$2 index
  [ -x "$venv/bin/python" ] || python3 -m venv "$venv" || return
  "$venv/bin/pip" install --disable-pip-version-check --require-hashes \
    -r <(sed -n '/^uv==/,/# via/p' tools/requirements.lock) || return
  # Use the package index that pip is configured for.
  index=${PIP_INDEX_URL:-$("$venv/bin/pip" config get global.index-url 2>/dev/null)}
  [ -z "$index" ] || export UV_DEFAULT_INDEX=${UV_DEFAULT_INDEX:-$index}
  "$venv/bin/uv" pip install --python "$venv/bin/python" --require-hashes --group "$group" -c tools/requirements.lock
}

# separate_venv VENV GROUP: the same for a virtual environment other than .venv, unless it is up to date.
separate_venv() {
  install_venv_module
  once "$1" "$(locked)" "build/logs/pip-$2.log" "installing the group $2 of pyproject.toml into $1" install_group "$1" "$2"
}

# Debian may have python3 without venv, and no file proves it.
install_venv_module() {
  python3 -c 'import ensurepip, venv' 2>/dev/null || install_packages python3-venv:/nothing
}

# The checksum of the groups and of the lock.
locked() {
  { sed -n '/^\[dependency-groups\]/,/^\[tool/p' pyproject.toml && cat tools/requirements.lock; } | sha256sum
}

# once FOLDER CHECKSUM LOG TITLE COMMAND...: fills the folder by the command, unless it was filled from inputs with this
# checksum.
once() {
  local stamp=$1/fletching-stamp
  [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$2" ] || return 0
  attempt "${@:3}" || fail "failed: $4; is there a network? The whole log is $3"
  printf '%s' "$2" >"$stamp"
}

# attempt LOG TITLE COMMAND...: runs the command with its output in LOG. Prints a line at the start and at the end, the
# last line of the log every 10 seconds, and the end of the log after a failure.
attempt() {
  local log=$1 title=$2 began=$SECONDS code=0 ticker
  shift 2
  mkdir -p build/logs
  echo "setup: $title"
  : >"$log"
  (while sleep 10 >/dev/null 2>&1; do
    echo "setup: $((SECONDS - began)) s: $(readable "$log")"
  done) &
  ticker=$!
  "$@" >"$log" 2>&1 || code=$?
  kill "$ticker" && wait "$ticker" 2>/dev/null
  if [ $code -eq 0 ]; then
    echo "setup: done ($((SECONDS - began)) s)"
  else
    tail -n 5 "$log" >&2
  fi
  return $code
}

# The last line of a log, or apt's last report, up to 100 characters:
# "dlstatus:3:12.5000:Retrieving file 3 of 40 (20s remaining)" becomes "12 %: Retrieving ...".
readable() {
  { grep -aE '^(dl|pm)status:' "$1" || cat "$1"; } | tail -n 1 |
    sed -E 's/^(dl|pm)status:.*:([0-9]+)[.][0-9]*:/\2 %: /; s/^(.{100}).*/\1/'
}
