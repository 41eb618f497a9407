#!/bin/bash
#SBATCH --job-name=edgen
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --requeue
set -eu
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
address=$(srun --nodes=1 --ntasks=1 -w "$head" hostname -I | cut -d' ' -f1):6379
srun --nodes=1 --ntasks=1 -w "$head" ray start --head --port=6379 --num-cpus=8 --block &
sleep 20
srun --nodes=$((SLURM_JOB_NUM_NODES - 1)) --ntasks=$((SLURM_JOB_NUM_NODES - 1)) --exclude="$head" \
  ray start --address="$address" --num-cpus=8 --block &
sleep 20
edgen generate jobs/quickstart.yaml -o "$HOME/runs/quickstart" --on "ray://$address"
