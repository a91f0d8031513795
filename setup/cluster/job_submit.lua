-- The site's own rules, which SLURM asks at every submission (also with --test-only). cluster.py fills in the fields.

local rule = { @rule@ } -- GPUs per node -> {least, most} CPUs per node
local node_cpus, node_gpus = @cpus@, @gpus@
local needs_account, needs_qos = @account@, @qos@

local function given(value, none)
  return value ~= nil and value ~= none and value ~= slurm.NO_VAL and value ~= slurm.NO_VAL16 and value ~= 0
end

-- The number in "gres:gpu:4", "gpu:a100:4" or "gpu" (one); nil where no GPU is named.
local function count(tres)
  for part in string.gmatch(tres or "", "[^,]+") do
    part = string.gsub(part, "^gres[:/]", "")
    if part == "gpu" or string.match(part, "^gpu[:=]") then
      return tonumber(string.match(part, "[:=](%d+)$") or 1)
    end
  end
end

local function refuse(text)
  slurm.log_user("%s", text)
  return slurm.ERROR
end

function slurm_job_submit(job, partitions, uid)
  if needs_account and not given(job.account, "") then
    return refuse("This site needs an account: --account=... or SBATCH_ACCOUNT")
  end
  if needs_qos and not given(job.qos, "") then
    return refuse("This site needs a QOS: --qos=... or SBATCH_QOS")
  end
  local nodes = given(job.min_nodes) and job.min_nodes or 1
  local tasks = given(job.ntasks_per_node) and job.ntasks_per_node
    or math.ceil((given(job.num_tasks) and job.num_tasks or nodes) / nodes)
  local gpus = count(job.tres_per_node) or (count(job.tres_per_task) or 0) * tasks
  if count(job.tres_per_job) then
    gpus = math.ceil(count(job.tres_per_job) / nodes)
  end
  local cpus = tasks * (given(job.cpus_per_task) and job.cpus_per_task or 1)
  if count(job.cpus_per_tres) then
    cpus = gpus * count(job.cpus_per_tres)
  elseif job.shared == 0 then -- --exclusive
    cpus = node_cpus
  end
  local span = rule[gpus]
  if span and (cpus < span[1] or cpus > span[2]) then
    return refuse(string.format("%d GPU(s) per node need %d..%d CPUs per node, this job asks %d",
      gpus, span[1], span[2], cpus))
  end
  return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
  return slurm.SUCCESS
end
