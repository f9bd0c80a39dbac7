#!/usr/bin/env bash
# Installs what the tests need and this machine lacks: PostgreSQL, Chromium, nginx and
# a keyring with apt as root, npm packages in the folders named as arguments. Where it
# may not install, it says what will be skipped; with CI=true that is an error.
set -euo pipefail
cd "$(dirname "$0")/.."

lacking=()
missing() {
	echo "test/setup.sh: $1"
	lacking+=("$1")
}

has_postgres() { compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null; }
has_chromium() {
	local name
	for name in chromium chromium-browser google-chrome headless-shell; do
		command -v "$name" >/dev/null && return
	done
	return 1
}
has_keyring() { command -v dbus-run-session >/dev/null && command -v gnome-keyring-daemon >/dev/null; }
has_nginx() { command -v nginx >/dev/null || [[ -x /usr/sbin/nginx ]]; }

packages=()
has_postgres || packages+=(postgresql)
has_chromium || packages+=(chromium)
has_nginx || packages+=(nginx-light)
has_keyring || packages+=(dbus gnome-keyring)
command -v npm >/dev/null || packages+=(npm)
command -v curl >/dev/null || packages+=(curl)
if ((${#packages[@]})) && [[ $EUID -eq 0 ]] && command -v apt-get >/dev/null; then
	echo "test/setup.sh: installing ${packages[*]}"
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq || true
	apt-get install -qq -y --no-install-recommends "${packages[@]}" >/dev/null || true
fi
has_postgres || missing "no PostgreSQL (initdb, postgres): the PostgreSQL half of the tests is skipped"
has_nginx || missing "no nginx: the tests of ostiary doctor and of the proxies fail"
has_keyring || missing "no dbus-run-session or no gnome-keyring-daemon: the system's keyring is not tried"
has_chromium || missing "no Chromium: the browser tests are skipped"

# Side by side: they wait for the network.
folders=() installs=()
for folder in "$@"; do
	[[ -f $folder/package.json ]] || continue
	if [[ -d $folder/node_modules && ! $folder/package-lock.json -nt $folder/node_modules ]]; then
		continue
	fi
	(cd "$folder" && npm ci --no-fund --no-audit --loglevel=error && touch node_modules) &
	folders+=("$folder") installs+=($!)
done
for i in "${!installs[@]}"; do
	wait "${installs[i]}" || missing "npm ci failed in ${folders[i]}: its tests are skipped"
done

if ((${#lacking[@]})) && [[ ${CI:-} == true ]]; then
	echo "test/setup.sh: CI=true skips nothing"
	exit 1
fi
