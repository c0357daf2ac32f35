import type { SessionState } from '../../model/agent.ts'
import type { Runtime, Session, SessionPort } from '../runtime.ts'
import { checkScript, type ScriptRule, ScriptSettings } from './settings.ts'

export interface ScriptedOptions {
  /** Calls back after that long; the returned function cancels. */
  after(ms: number, callback: () => void): () => void
}

/**
 * An agent in this process that plays a script: it hears text, and says text in which commands may sit, like any
 * other agent. Nothing about it is faked towards the engine: its commands go through the scanner and the door.
 */
export function createScriptedRuntime(options: ScriptedOptions): Runtime {
  return {
    name: 'scripted',
    check: ({ settings }) => checkScript(settings),
    start: async (agent, port) => startScript(ScriptSettings.parse(agent.settings), port, options),
  }
}

function startScript({ script }: ScriptSettings, port: SessionPort, { after }: ScriptedOptions): Session {
  const left = new Map<ScriptRule, number>(
    script.map((rule) => [rule, rule.times ?? Number.POSITIVE_INFINITY]),
  )
  let state: SessionState = 'initializing'
  let turn = 0
  let cancelThought: (() => void) | undefined

  function become(next: SessionState, evidence: string) {
    state = next
    port.changed(next, evidence)
  }

  function play(rule: ScriptRule | undefined, heard: Heard) {
    turn += 1
    const number = turn
    if (rule === undefined) {
      become('idle', `turn ${number} needed no answer`)
      return
    }
    left.set(rule, left.get(rule)! - 1)
    become('busy', `turn ${number} began`)
    cancelThought = after(rule.after_ms ?? 0, () => {
      cancelThought = undefined
      void port.said({ text: `${fill(rule.say, heard)}\n`, channel: 'api' })
      if (state === 'busy') become('idle', `turn ${number} ended`)
    })
  }

  function fitting(matches: (rule: ScriptRule) => boolean): ScriptRule | undefined {
    return script.find((rule) => matches(rule) && left.get(rule)! > 0)
  }

  async function end() {
    cancelStart()
    cancelThought?.()
    become('exited', 'the script was stopped')
  }

  // After the caller has its session in hand.
  const cancelStart = after(0, () =>
    play(
      fitting((rule) => rule.on === 'start'),
      { from: '', title: '', content: '' },
    ),
  )

  return {
    get state() {
      return state
    },
    async deliver({ text }) {
      if (state !== 'idle') return { state: 'queued', evidence: `the script is ${state}` }
      const heard = hear(text)
      play(
        fitting(({ on }) => on !== 'start' && 'text' in on && text.includes(on.text)),
        heard,
      )
      return { state: 'read', evidence: `the script took it as its turn ${turn}` }
    },
    async notice(text) {
      const rule = fitting(({ on }) => on !== 'start' && 'notice' in on && text.includes(on.notice))
      if (rule === undefined) return
      left.set(rule, left.get(rule)! - 1)
      void port.said({ text: `${rule.say}\n`, channel: 'api' })
    },
    // Its memory is this process: whatever a process before this one was given, this one never heard.
    async locate() {
      return { at: 'absent', evidence: 'the script began anew' }
    },
    async interrupt() {
      if (cancelThought === undefined) return { stopped: true, evidence: 'no turn was running' }
      cancelThought()
      cancelThought = undefined
      become('idle', `turn ${turn} was interrupted`)
      return { stopped: true, evidence: `turn ${turn} was interrupted` }
    },
    stop: end,
    leave: end,
  }
}

interface Heard {
  from: string
  title: string
  content: string
}

/** The parts of the last envelope in the text, for the script's answer. */
function hear(text: string): Heard {
  const envelopes = [
    ...text.matchAll(
      /\[ORCHUB MESSAGE (\S+)\]\nFrom: (.*)\nTitle: (.*)\nPriority: .*\n\n([\s\S]*?)\n\n\[END ORCHUB MESSAGE \1\]/g,
    ),
  ]
  const last = envelopes.at(-1)
  return { from: last?.[2] ?? '', title: last?.[3] ?? '', content: last?.[4] ?? '' }
}

function fill(say: string, heard: Heard): string {
  return say.replace(/\{\{(from|title|content)\}\}/g, (_, part: keyof Heard) => heard[part])
}
