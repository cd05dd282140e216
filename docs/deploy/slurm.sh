#!/bin/bash
#SBATCH --job-name=llama-3-1-70b
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --array=0-3
#SBATCH --output=llama-3-1-70b-%A-%a.log

srun vllm serve meta-llama/Llama-3.1-70B --tensor-parallel-size 2 --pipeline-parallel-size 2 --quantization fp8 --kv-cache-dtype fp8 --max-model-len 131072 --max-num-seqs 93 --max-num-batched-tokens 2048 --gpu-memory-utilization 0.9 --port 8000
