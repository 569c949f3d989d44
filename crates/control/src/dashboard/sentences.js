// What the router says in sentences, in the languages that are not its own: each by its name and the values it was made of.
// Where there is none, its English stands.

const whole = share => `${Math.round(share * 100)} %`;

const ASPECTS = { engine: "引擎", version: "版本", model: "模型", "chat template": "对话模板", "block size": "块大小", "cache's hash": "缓存哈希" };

const says = said => Array.isArray(said)
  ? said.map(({ id, root, context }) => id + (root ? `（源自 ${root}）` : "") + (context ? `（上下文 ${context}）` : "")).join(" 与 ") : said;

const difference = ({ aspect, opinions }) => `${ASPECTS[aspect] ?? aspect}：` + opinions.map(one =>
  `${one.instances.join("、")}${one.more ? ` 等 ${one.instances.length + one.more} 个` : ""} 为 ${says(one.says)}`).join("，");

const chinese = {
  alerts: {
    IsothermLowHitRate: ({ endpoint, variant }, { hit_rate, repeats, goal }) =>
      `${endpoint}/${variant} 的提示 Token 只有 ${whole(hit_rate)} 来自缓存。${whole(repeats)} 的请求与较早的请求开头相同，因此 ${whole(goal)} 的目标可以达到。` +
      "是缓存过小、归属实例已满（见溢出），还是引擎什么都不缓存？`isotherm doctor` 会说明。",
    IsothermCachePressure: ({ instance }, { missing, kv_cache_usage }) =>
      `${instance} 已不再保有预期缓存内容的 ${whole(missing)}。它的缓存装不下归属于它的前缀。` +
      (kv_cache_usage === null ? "" : `运行中的请求占用其中 ${whole(kv_cache_usage)}。`) +
      "请增加实例、给引擎的缓存更多内存，或降低 concurrency_threshold，让同时运行的请求更少。",
    IsothermHotPrefix: ({ endpoint, variant }, { share, prefix, busiest, skew, spilled }) =>
      `发往 ${endpoint}/${variant} 的请求有 ${whole(share)} 开头相同。前缀 ${prefix} 使 ${busiest} 承担了应得份额的 ${skew.toFixed(1)} 倍，全部请求中有 ${whole(spilled)} 溢出。` +
      "可提高 prefix_length 把它分开、提高 concurrency_threshold，或用 ADAPTIVE 把它分散。",
    IsothermSpills: ({ endpoint, variant }, { share }) =>
      `${endpoint}/${variant} 有 ${whole(share)} 的请求离开了归属实例。归属实例满得太频繁：这样的请求都要重新计算提示。` +
      "请增加实例；引擎还有余力时，可提高 concurrency_threshold 或 max_in_flight。",
    IsothermInstanceIll: ({ instance }, { availability, problem }) => {
      const why = problem ? `${chinese.problems[problem.kind]?.(problem.values) ?? problem.message}。` : "";
      return availability === "down" ? `${instance} 不应答探测。${why}在它恢复之前，它的前缀要在别处重新计算。`
        : `${instance} 上的请求失败。${why}isotherm_upstream_errors_total 给出失败的种类，它自己的日志给出原因。`;
    },
    IsothermSlowFirstToken: ({ endpoint, variant }, { p95_seconds, goal_seconds }) =>
      `${endpoint}/${variant}：首 Token 延迟的 P95 为 ${p95_seconds.toFixed(1)} 秒，高于 ${goal_seconds.toFixed(1)} 秒。` +
      "本面板显示慢的是命中、未命中还是溢出。命中慢：引擎过载。未命中慢：提示又长又新。",
    IsothermPrefixCachingOff: ({ instance }, { requests }) => `${instance} 不缓存前缀。` +
      (requests === null ? "它的指标如此说明。" : `${requests} 个请求再次用到它服务过的前缀，却没有任何内容来自缓存。`) +
      "启动 vLLM 时不要带 --no-enable-prefix-caching，SGLang 不要带 --disable-radix-cache，TensorRT-LLM 要启用 enable_block_reuse，llama.cpp 要带 --cache-prompt。",
    IsothermReplicasDisagree: ({ endpoint, variant }, { differences }) =>
      `${endpoint}/${variant} 的副本不一致。${differences.map(difference).join("；")}。请求去向不同，答复就不同，或者到处都没有缓存。`,
    IsothermEngineRestarted: ({ instance }) =>
      `${instance} 的引擎已重启。它的缓存是空的，前缀要重新计算。是谁重启的？如果没有人，它的日志会说明它为何退出。`,
  },
  problems: {
    refused: () => "连接被拒绝",
    no_connection_within: ({ seconds }) => `${seconds} 秒内没有连上`,
    no_connection: ({ cause }) => `没有连上：${cause}`,
    no_answer: ({ path, seconds }) => `GET ${path} 在 ${seconds} 秒内没有应答`,
    broken_answer: ({ path, cause }) => `GET ${path} 的应答有误：${cause}`,
    status: ({ path, status }) => `GET ${path} 的应答是 ${status}`,
    unknown_endpoint: ({ name, known }) => `没有端点 ${name}；现有：${known.join("、")}`,
    unknown_variant: ({ endpoint, name, known }) => `端点 ${endpoint} 没有变体 ${name}；现有：${known.join("、")}`,
    variant_not_named: ({ endpoint, known }) => `端点 ${endpoint} 有多个变体：请指明 ${known.join("、")} 之一`,
    unknown_instance: ({ id }) => `那里没有实例 ${id}`,
    ambiguous_instance: ({ id, places }) => `实例 ${id} 同时在 ${places.join("、")}：请指明端点和变体`,
    duplicate: ({ id, url }) => `${url} 已作为实例 ${id} 存在`,
    managed: ({ endpoint }) => `端点 ${endpoint} 是托管的：请用 UpdateEndpointWeightsAndCapacities 更改其实例`,
    managed_routing: ({ endpoint }) => `端点 ${endpoint} 是托管的：路由方式由其 RoutingConfig 决定，请用 UpdateEndpoint 更改`,
    last_instance: ({ id, variant }) => `${id} 是变体 ${variant} 的最后一个实例：没有它就无人应答；请先添加另一个`,
    url_scheme: () => "URL 须以 http:// 或 https:// 开头",
    url_credentials: () => "URL 不能含用户名或密码；引擎的密钥由 api_key_env 给出",
    url_host: () => "URL 须有主机：IPv4 地址、方括号中的 IPv6 地址，或由字母、数字、- 和 . 组成的名称",
    url_port: () => "URL 的端口须在 1 到 65535 之间，或不写：80（https：443）",
    url_path: () => "URL 须为基础地址，不含查询、片段、点段或空格",
    request_not_kept: ({ id }) => `没有保留请求 ${id}；可用：最近请求的 x-request-id 或响应的 id，见 /api/requests`,
    diagnostics_off: () => "diagnostics 未开启：在配置中写 `diagnostics: {}`，或使用 --diagnostics",
    not_analysed: () => "最近的请求中没有可以分析的",
  },
  notes: {
    last_requests_only: () => "路由器只保留最近请求的哈希（diagnostics.memory）：之前的内容不得而知，因此曾出现过的 Token 可能比这里说的多，间隔更久才重现的也看不到。",
    missed: ({ requests }) => `有 ${requests} 个请求未计入，因为它们来得比取哈希更快（diagnostics.requests_per_second）：每秒的请求更多，曾出现过的 Token 也可能更多。`,
    wrong_bodies: ({ bodies }) => `有 ${bodies} 个请求体不合其 API 的要求，未计入。`,
    out_of_order: ({ requests }) => `有 ${requests} 个请求在日志中远远排在较晚的请求之后；它们距上次使用的时间偏短。请按时间排序日志。`,
    forgot: () => "内存有限：共享长度和破坏共享的原因只对照最近一百万个或更多的块，而非整个日志。命中率仍基于全部。",
    no_text: () => "日志只有哈希，没有文本：无法说明是什么破坏了共享。",
    native_bodies: () => "原生请求体：路由器按收到的字节截取前缀。",
    keys_only: ({ all }) => `${all ? "日志" : "部分日志"}只有前缀的键，没有块链：共享的开头有多长、另一种大小的缓存或另一个 PrefixLength 的命中率、以及什么破坏了共享，都无法得知。请分析请求本身。`,
  },
  places: { template: "模板或其参数", documents: "文档", tools: "工具", continued: "所延续的响应", system: "系统提示", head: "角色或名称",
    reasoning: "推理", call: "工具调用", tool_result: "工具结果", medium: "图像、声音或文件", prompt: "提示" },
  outcomes: { refused: "被拒绝", unauthorized: "未授权", queue_full: "队列已满", queue_timeout: "排队超时", deadline: "超过期限",
    unavailable: "无可用实例", upstream_error: "实例出错", upstream_timeout: "实例超时", truncated: "响应中断", client_left: "客户端离开",
    internal_error: "路由器内部错误" },
};

const languages = { zh: chinese };

/** An alert's sentences. */
export const alertSaid = (language, { alert, labels, values }) => languages[language]?.alerts[alert]?.(labels, values) ?? null;
/** Why an instance is not well, or a change was refused. */
export const problemSaid = (language, { kind, values }) => languages[language]?.problems[kind]?.(values) ?? null;
/** What to know about an analysis. */
export const noteSaid = (language, { kind, values }) => languages[language]?.notes[kind]?.(values) ?? null;
/** How a request ended. */
export const outcomeSaid = (language, outcome) => languages[language]?.outcomes[outcome] ?? outcome;

/** Where in a prompt two requests part. */
export function placeSaid(language, { kind, message, role }) {
  const places = languages[language]?.places;
  if (!places) return null;
  if (message === null) return places[kind] ?? places.prompt;
  return `messages[${message}]` + (role ? `（${role}）` : "") + (places[kind] ? `：${places[kind]}` : "");
}
