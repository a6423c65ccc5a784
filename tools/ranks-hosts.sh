#!/bin/sh
# Runs a command on four "hosts" of this machine: network namespaces with a bridge between them, each with a name of its
# own, so that ranks on different hosts have nothing but TCP. Needs root, iproute2 and Open MPI.
#   tools/ranks-hosts.sh Rscript tools/ranks-cases.R
hosts=4
net=10.77.0
agent=`mktemp`
cleanup() {
  for k in `seq 1 $hosts`; do ip netns del weft$k 2>/dev/null; done
  ip link del weft-bridge 2>/dev/null
  rm -f "$agent"
}
trap cleanup EXIT INT TERM
cleanup
ip link add weft-bridge type bridge && ip addr add $net.1/24 dev weft-bridge && ip link set weft-bridge up || exit 1
list=
for k in `seq 1 $hosts`; do
  ip netns add weft$k || exit 1
  ip link add weft-v$k type veth peer name eth0 netns weft$k
  ip link set weft-v$k master weft-bridge up
  ip -n weft$k addr add $net.`expr 10 + $k`/24 dev eth0
  ip -n weft$k link set eth0 up
  ip -n weft$k link set lo up
  list=$list${list:+,}$net.`expr 10 + $k`:2
done
# mpirun calls: agent address command...
cat > "$agent" <<'AGENT'
#!/bin/sh
host=weft`expr ${1##*.} - 10`
shift
exec ip netns exec $host unshare --uts sh -c "hostname $host; $*"
AGENT
chmod +x "$agent"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpirun --mca plm_rsh_agent "$agent" --mca plm_rsh_no_tree_spawn 1 \
  --mca oob_tcp_if_include $net.0/24 --mca btl_tcp_if_include $net.0/24 \
  --mca btl tcp,self --host $list -n ${RANKS:-4} --map-by node --bind-to none -x R_LIBS -x OMP_NUM_THREADS "$@"
