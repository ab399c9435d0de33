#!/usr/bin/env bash
# A Slurm cluster of one node on the loopback, and the first paper at smoke scale through sbatch, with the node
# drained in the middle: the results must be the bytes of a local run. Needs root on a Debian machine that
# has no Slurm of its own; removes what it sets up, but for the packages.
#
#   tests/cluster/slurm.sh [PYTHON]      PYTHON: of an environment with the library's requirements
set -euo pipefail

repository=$(cd "$(dirname "$0")/../.." && pwd)
python=$(realpath -s "${1:-$repository/.venv/bin/python}")
node=$(hostname -s)
scratch=$(mktemp -d /tmp/private-consensus-slurm.XXXXXX)
configuration=/etc/slurm/slurm.conf
munge_pid=/run/munge/munged.pid
begin=$SECONDS

say() { echo "[$((SECONDS - begin)) s] $*"; }
fail() { say "FAILED: $*"; tail -n 20 "$scratch"/*.log "$scratch"/log/*.log 2>/dev/null; exit 1; }

[ "$(id -u)" = 0 ] || { echo "must be root: Slurm's daemons are started"; exit 2; }
[ ! -e $configuration ] || { echo "$configuration exists: this machine has a Slurm of its own"; exit 2; }

stop() {
  [ ! -s "$1" ] || kill "$(cat "$1")" 2>/dev/null || true
}

tear_down() {
  [ -z "${workflow:-}" ] || kill "$workflow" 2>/dev/null || true
  scancel --quiet --nodelist="$node" 2>/dev/null || true
  stop "$scratch/slurmd.pid"
  stop "$scratch/slurmctld.pid"
  [ -z "${munge_is_ours:-}" ] || stop $munge_pid
  rm -f $configuration
  [ -n "${KEEP:-}" ] || rm -rf "$scratch"
  say "torn down"
}
trap tear_down EXIT

install_slurm() {
  command -v slurmctld slurmd munged >/dev/null && return
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends slurm-wlm munge >/dev/null
}

start_slurm() {
  mkdir -p "$scratch"/{state,spool,log} "$(dirname $configuration)"
  if [ ! -s $munge_pid ]; then
    mkdir -p /run/munge && chown munge: /run/munge
    runuser -u munge -- munged
    munge_is_ours=yes
  fi
  cat >$configuration <<END
ClusterName=test
SlurmctldHost=$node(127.0.0.1)
SlurmUser=root
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
StateSaveLocation=$scratch/state
SlurmdSpoolDir=$scratch/spool
SlurmctldPidFile=$scratch/slurmctld.pid
SlurmdPidFile=$scratch/slurmd.pid
SlurmctldLogFile=$scratch/log/slurmctld.log
SlurmdLogFile=$scratch/log/slurmd.log
ReturnToService=2
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
NodeName=$node NodeAddr=127.0.0.1 CPUs=2 RealMemory=8000 State=UNKNOWN
PartitionName=main Nodes=$node Default=YES MaxTime=INFINITE State=UP
END
  slurmctld
  slurmd -N "$node"
  for _ in $(seq 60); do
    [ "$(sinfo -h -o %t 2>/dev/null)" = idle ] && return
    sleep 1
  done
  fail "the node did not come up"
}

# The plugin goes into an environment of its own that sees the packages of the given one.
make_environment() {
  "$python" -m venv --without-pip "$scratch/venv"
  local packages plugin
  packages=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  for site in "$scratch"/venv/lib/python3*/site-packages; do echo "$packages" >"$site/base.pth"; done
  plugin=$("$python" - "$repository/pyproject.toml" <<'END'
import sys, tomllib
wanted = tomllib.load(open(sys.argv[1], "rb"))["project"]["optional-dependencies"]["cluster"]
print(*(name for name in wanted if "slurm" in name))
END
  )
  "$scratch/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$plugin" >"$scratch/pip.log" 2>&1
}

# snakemake_in FOLDER PYTHON OPTIONS...
snakemake_in() {
  local folder=$1 interpreter=$2
  shift 2
  cd "$folder"
  exec "$interpreter" -m snakemake "$@" --configfile config/smoke.yaml \
    --config papers=[showkatbakhsh] runs=5 "data={source: surrogate}"
}

states() { squeue -h -o %T; }
await() { # SECONDS, what for, command...
  local limit=$1 what=$2
  shift 2
  for _ in $(seq "$limit"); do
    "$@" && return
    kill -0 "$workflow" 2>/dev/null || fail "the workflow ended before: $what"
    sleep 1
  done
  fail "no $what within $limit s"
}
cells_run() { squeue -h -t RUNNING -o %j:%k | grep -q .; }
some_cell_is_done() { compgen -G "$scratch/slurm/results/smoke/runs/*/*.parquet" >/dev/null; }
only_pending() { [ "$(states | sort -u)" = PENDING ]; }

install_slurm
start_slurm
say "Slurm $(slurmctld -V | cut -d' ' -f2), node $(sinfo -h -o %t), $(nproc) cores"
make_environment
say "plugin $("$scratch/venv/bin/python" -c 'from importlib.metadata import version as v
print(v("snakemake-executor-plugin-slurm"), "of Snakemake", v("snakemake"))')"
git clone --quiet "$repository" "$scratch/local"
git clone --quiet "$repository" "$scratch/slurm"

started=$SECONDS
(snakemake_in "$scratch/local" "$python" --cores 2) >"$scratch/local.log" 2>&1 || fail "the local run"
say "local run: $((SECONDS - started)) s"

started=$SECONDS
(snakemake_in "$scratch/slurm" "$scratch/venv/bin/python" --workflow-profile profiles/slurm \
  --slurm-init-seconds-before-status-checks 3 --seconds-between-status-checks 3) \
  >"$scratch/slurm.log" 2>&1 &
workflow=$!

await 300 "finished cell" some_cell_is_done
await 60 "running job" cells_run
scontrol update "NodeName=$node" State=DRAIN Reason=test
say "drained with jobs: $(states | sort | uniq -c | xargs)"
await 180 "waiting queue on the drained node" only_pending
say "node $(sinfo -h -o %t), jobs: $(states | sort | uniq -c | xargs)"
sleep 10
only_pending || fail "a job ran on a drained node"
scontrol update "NodeName=$node" State=RESUME
say "resumed"

wait "$workflow" || fail "the run through sbatch"
workflow=
jobs=$(grep -c "has been submitted with SLURM jobid" "$scratch/slurm.log" || true)
say "run through sbatch: $((SECONDS - started)) s, $jobs Slurm jobs"
[ -s "$scratch/slurm/results/smoke/report/index.html" ] || fail "there is no report"
for part in runs privacy data figures claims claims.parquet privacy.parquet; do
  diff -r "$scratch/local/results/smoke/$part" "$scratch/slurm/results/smoke/$part" ||
    fail "$part differs from the local run"
done
files=$(find "$scratch"/slurm/results/smoke/{runs,privacy,data,figures,claims} -type f | wc -l)
say "PASSED: report there; $files result files are the bytes of the local run"
