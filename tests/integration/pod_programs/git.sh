git config --global user.name agent
git config --global user.email agent@example.com
git init -q r
cd r
for n in 1 2 3; do echo $n > f$n; git add .; git commit -qm $n; done
git clone -q . ../c
git clone -q file://$PWD ../d
git -C ../c fsck
git -C ../c gc -q
git -C ../d log --oneline | grep -c . | grep 3
git -C ../d status --short
git stash list
echo hello
