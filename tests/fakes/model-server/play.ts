/** Requests to a scripted model and its answers, independent of the four wire formats. */

export interface ModelRequest {
  /** The caller by its key: `NAME` of `sk-ant-fake-NAME`. */
  readonly agent: string | undefined
  readonly model: string
  readonly system: string
  /** The user's text since the model's last answer; empty if only tool results came. */
  readonly userText: string
  /** The user's last text in the whole conversation. */
  readonly prompt: string
  /** Text that the program added: environment, reminders, context from hooks. */
  readonly reminders: readonly string[]
  /** Results since the model's last answer, in order. */
  readonly toolResults: readonly string[]
  readonly tools: readonly Tool[]
  /** A title, a summary or a check by the program: it has no tools, or requires JSON of a schema. */
  readonly side: boolean
  /** The JSON schema that the answer must match. */
  readonly schema: unknown
}

export interface Tool {
  readonly name: string
  /** Codex groups the tools of an MCP server. */
  readonly namespace?: string
}

export interface ModelReply {
  readonly thinking?: string
  readonly text?: string
  readonly toolCalls?: readonly ToolCall[]
  /** Waits before the first byte: the agent is busy. */
  readonly delayMs?: number
  /** Streams the text in pieces of this many characters, with this pause between them. */
  readonly chunkSize?: number
  readonly chunkMs?: number
  /** In tokens; estimated from the text by default. `input` includes cached tokens. */
  readonly usage?: Partial<Usage>
  readonly error?: ModelError
}

export interface Usage {
  readonly input: number
  readonly output: number
  readonly cached: number
}

export interface ModelError {
  /** 429, 500, 529 (overloaded), 400 … */
  readonly status: number
  readonly message?: string
  /** For example `context_length_exceeded`. */
  readonly code?: string
  /** For example `x-should-retry: false`, `retry-after: 1`. */
  readonly headers?: Readonly<Record<string, string>>
}

/** A tool of the MCP server `orc`, a shell command, or any tool by the program's name for it. */
export type ToolCall =
  | { readonly mcp: string; readonly input: object }
  | {
      readonly shell: string /** Codex: outside its sandbox, which needs permission. */
      readonly escalated?: boolean
    }
  | { readonly name: string; readonly input: object }

export type Player = (request: ModelRequest) => ModelReply | undefined | Promise<ModelReply | undefined>

/** The first matching rule answers. Without `side` and `toolResult` it only matches texts of the user. */
export interface Rule {
  readonly when?: RegExp
  readonly agent?: string
  /** Matches a call with such a tool result. */
  readonly toolResult?: RegExp
  /** Matches side calls only. */
  readonly side?: true
  /** Matches this many times. */
  readonly times?: number
  /** The model is silent until a function's promise resolves. */
  readonly reply: ModelReply | ((request: ModelRequest) => ModelReply | Promise<ModelReply>)
}

export type Play = Player | readonly Rule[]

export function playerOf(play: Play): Player {
  if (typeof play === 'function') return play
  const uses = new Map<Rule, number>()
  return (request) => {
    const rule = play.find((one) => fits(one, request) && (uses.get(one) ?? 0) < (one.times ?? Infinity))
    if (!rule) return undefined
    uses.set(rule, (uses.get(rule) ?? 0) + 1)
    return typeof rule.reply === 'function' ? rule.reply(request) : rule.reply
  }
}

function fits(rule: Rule, request: ModelRequest): boolean {
  if ((rule.side ?? false) !== request.side) return false
  if (rule.agent !== undefined && rule.agent !== request.agent) return false
  if (!rule.toolResult) return request.toolResults.length === 0 && (rule.when?.test(request.userText) ?? true)
  const { toolResult, when } = rule
  return request.toolResults.some((result) => toolResult.test(result)) && (when?.test(request.prompt) ?? true)
}
