import type { ModelReply, ModelRequest, Player, ToolCall } from '../../fakes/model-server/play.ts'

type Said = ModelReply | Promise<ModelReply> | ((request: ModelRequest) => ModelReply)

/** A command as the model sends it: its type, its fields, and which of them is the body. */
export type Saying = (type: string, fields: Readonly<Record<string, string>>, body?: string) => Command

interface Command {
  readonly text?: string
  readonly call?: { readonly type: string; readonly input: object }
}

/** Each agent's model has a part: what it answers, once, when it is given a message with those words. */
export function createParts() {
  let lines: { agent: string; words: string; said: Said }[] = []

  const play: Player = (request) => {
    if (request.side || request.userText === '') return undefined
    // Interrupted prompts stay in the conversation: only the last one counts.
    const line = lines.find(({ agent, words }) => agent === request.agent && request.prompt.includes(words))
    if (line === undefined) return undefined
    lines = lines.filter((one) => one !== line)
    return typeof line.said === 'function' ? line.said(request) : line.said
  }

  return {
    play,
    when(agent: string, words: string, said: Said) {
      lines.push({ agent, words, said })
    },
    /** The model is silent, and its agent busy, until it is let go on. */
    hold(agent: string, words: string): (said: ModelReply) => void {
      const { promise, resolve } = Promise.withResolvers<ModelReply>()
      lines.push({ agent, words, said: promise })
      return resolve
    },
    /** Script entries that were never used. A test that ends with some has not tested what its name says. */
    unsaid: () => lines.map(({ agent, words }) => `${agent} ${words}`),
    forget() {
      lines = []
    },
  }
}

export const byTool: Saying = (type, input) => ({ call: { type, input } })

export const byXml: Saying = (type, fields, body) => {
  const attributes = Object.entries(fields)
    .filter(([field]) => field !== body)
    .map(([field, value]) => ` ${field}="${value}"`)
  return {
    text: `<orc-command name="${type}"${attributes.join('')}>${fields[body ?? ''] ?? ''}</orc-command>`,
  }
}

/** The seed's own notation, at the beginning of a line (S2.2 to S2.7). */
export const byJson: Saying = (type, fields) => ({
  text: JSON.stringify({ type: type.toUpperCase(), ...fields }),
})

/** Commands become an answer; a program offers the tools under a name of its own, an agent that is a model as they are. */
export function says(...commands: readonly Command[]): (request: ModelRequest) => ModelReply {
  return ({ tools }) => ({
    text: ['I go on.', ...commands.flatMap(({ text }) => (text === undefined ? [] : [text]))].join('\n'),
    toolCalls: commands.flatMap(({ call }): ToolCall[] => {
      if (call === undefined) return []
      // Codex has tools of its own with such names, beside those of the server.
      const isOwn = tools.some(({ name }) => name === call.type) && !tools.some(({ namespace }) => namespace)
      return [isOwn ? { name: call.type, input: call.input } : { mcp: call.type, input: call.input }]
    }),
  })
}
