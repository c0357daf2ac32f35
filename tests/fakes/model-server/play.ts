/** What a scripted model is asked and answers, whichever of the four wire formats carries it. */

export interface ModelRequest {
  /** Whose key came with it: `NAME` of `sk-ant-fake-NAME`. */
  readonly agent: string | undefined
  readonly model: string
  readonly system: string
  /** What the user said since the model's last words; empty when only tool results came. */
  readonly userText: string
  /** What the user said last in the whole conversation. */
  readonly prompt: string
  /** What the program itself put beside the user's words: environment, reminders, hooks' context. */
  readonly reminders: readonly string[]
  /** Results since the model's last words, in order. */
  readonly toolResults: readonly string[]
  readonly tools: readonly Tool[]
  /** A title, a summary, a check of the program: it carries no tools, or demands JSON of a schema. */
  readonly side: boolean
  /** The JSON schema of the answer that is demanded. */
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
  /** Silence before the first byte: the agent is busy. */
  readonly delayMs?: number
  /** The text comes in pieces of that many characters, that far apart. */
  readonly chunkSize?: number
  readonly chunkMs?: number
  /** In tokens; estimated from the text where not given. `input` includes what was cached. */
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
  /** Such as `context_length_exceeded`. */
  readonly code?: string
  /** Such as `x-should-retry: false`, `retry-after: 1`. */
  readonly headers?: Readonly<Record<string, string>>
}

/** A tool of the MCP server `orc`, a shell command, or any tool by the program's own name for it. */
export type ToolCall =
  | { readonly mcp: string; readonly input: object }
  | {
      readonly shell: string /** Codex: outside its sandbox, which needs permission. */
      readonly escalated?: boolean
    }
  | { readonly name: string; readonly input: object }

export type Player = (request: ModelRequest) => ModelReply | undefined | Promise<ModelReply | undefined>

/** The first rule that fits answers. Without `side` and `toolResult` it fits what the user says only. */
export interface Rule {
  readonly when?: RegExp
  readonly agent?: string
  /** Fits a call that brings a tool's result like this. */
  readonly toolResult?: RegExp
  /** Fits side calls, and these only. */
  readonly side?: true
  /** Fits that often, then never again. */
  readonly times?: number
  /** A function may take its time: the model is silent until it resolves. */
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
