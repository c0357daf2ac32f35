import type { DeclaredStatus, SessionState } from '../../base/agent.ts'
import type { Reader, Tx } from '../../store/store.ts'

export interface AgentRow {
  name: string
  session_state: SessionState
  /** 1 in a turn, at work or before a dialog. */
  in_turn: number
  declared_status: DeclaredStatus | null
  current_task: string | null
  paused: number
  registered_at: number
  updated_at: number
  owner: string | null
}

/** Makes sure the agent has a row; a known one keeps its state. */
export async function registerAgent(tx: Tx, name: string, state: SessionState): Promise<void> {
  await tx.run(
    `INSERT INTO agents (name, session_state, registered_at, updated_at) VALUES (?, ?, ?, ?)
     ON CONFLICT (name) DO NOTHING`,
    [name, state, tx.now, tx.now],
  )
}

export async function readAgents(reader: Reader): Promise<AgentRow[]> {
  return await reader.all<AgentRow>('SELECT * FROM agents ORDER BY name')
}

export async function readAgent(reader: Reader, name: string): Promise<AgentRow | undefined> {
  return await reader.get<AgentRow>('SELECT * FROM agents WHERE name = ?', [name])
}

export async function declareStatus(
  tx: Tx,
  agent: string,
  status: DeclaredStatus,
  task: string | null,
): Promise<void> {
  await tx.run('UPDATE agents SET declared_status = ?, current_task = ?, updated_at = ? WHERE name = ?', [
    status,
    task,
    tx.now,
    agent,
  ])
}

/** `isInTurn` left out: as it was. A process that is found again is still in the turn that it was in. */
export async function setSession(
  tx: Tx,
  agent: string,
  state: SessionState,
  isInTurn?: boolean,
): Promise<void> {
  const inTurn = isInTurn === undefined ? null : Number(isInTurn)
  await tx.run(
    'UPDATE agents SET session_state = ?, in_turn = COALESCE(?, in_turn), updated_at = ? WHERE name = ?',
    [state, inTurn, tx.now, agent],
  )
}

export async function setPaused(tx: Tx, agent: string, paused: boolean): Promise<void> {
  await tx.run('UPDATE agents SET paused = ?, updated_at = ? WHERE name = ?', [paused ? 1 : 0, tx.now, agent])
}
