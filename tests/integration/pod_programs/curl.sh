test "$(curl --silent --output said --write-out '%{http_code}' http://not.allowed.test/)" = 403
grep -q blocked_by_cage said
mkdir t
for n in 1 2 3 4; do echo $n > t/$n; done
tar -czf t.tar.gz t
tar -xzOf t.tar.gz t/3 | grep -qx 3
find t -type f -print0 | xargs -0 -P 4 -n 1 sort --parallel=2 > /dev/null
timeout 5 cat said > /dev/null
bash -c 'set -m; sleep 0 & wait; cat <(echo hello)'
