import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { basename, join } from 'node:path'
import { z } from 'zod'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { Models, ToolDefinition } from '../../llm/llm.ts'
import type { AgentStart, Runtime, Session, SessionPort } from '../runtime.ts'
import { createConversation } from './conversation.ts'
import { openJournal } from './journal.ts'
import { LIMITS, type LlmLimits, startSession } from './session.ts'
import { checkSettings, historyBudget, LlmSettings } from './turn-loop.ts'

export interface LlmOptions {
  readonly models: Models
  /** The commands available to agents, as tools. */
  commands(): readonly ToolDefinition[]
  readonly clock: Clock
  readonly log: Log
  readonly limits?: Partial<LlmLimits>
}

/** Names the agent's current conversation and its file. */
const LlmSavedState = z.object({ conversation: z.string().min(1), file: z.string().min(1) })

/** Agents that consist of a model and a prompt: their tools are the commands, their memory is a file. */
export function createLlmRuntime(options: LlmOptions): Runtime {
  return {
    name: 'llm',
    check: checkSettings,
    start: (agent, port) => start(agent, port, options),
  }
}

async function start(agent: AgentStart, port: SessionPort, options: LlmOptions): Promise<Session> {
  const { models, clock, log } = options
  const settings = LlmSettings.parse(agent.settings ?? {})
  const earlier = LlmSavedState.safeParse(agent.savedState).data
  const isThere = earlier !== undefined && existsSync(fileOf(agent, earlier.file))
  const savedState = isThere ? earlier : newConversation()
  const file = fileOf(agent, savedState.file)

  const conversation = createConversation(
    historyBudget(settings, models.about(settings.model)?.contextWindow),
  )
  const journal = await openJournal(file, conversation.add, (line) =>
    log.warn({ agent: agent.name, file, line }, 'cannot read a line of the conversation'),
  )
  await port.saveState(savedState)
  if (agent.signal?.aborted) {
    await journal.close()
    throw agent.signal.reason
  }
  return startSession({
    agent,
    port,
    settings,
    models,
    tools: agent.command === undefined ? [] : options.commands(),
    conversation,
    id: savedState.conversation,
    file,
    journal,
    note: isThere ? 'resumed its conversation' : 'started a new conversation',
    isMemoryLost: earlier !== undefined && !isThere,
    clock,
    log,
    limits: { ...LIMITS, ...options.limits },
  })
}

function newConversation(): z.output<typeof LlmSavedState> {
  const conversation = randomUUID()
  return { conversation, file: `conversation-${conversation}.jsonl` }
}

const fileOf = (agent: AgentStart, name: string) => join(agent.folder, basename(name))
