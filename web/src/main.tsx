import { createRoot } from 'react-dom/client'
import './styles/base.css'
import './styles/shell.css'
import './styles/views.css'
import { Entrance } from './entrance.tsx'
import { stampStyles } from './nonce.ts'
import { applyTheme } from './theme.ts'

stampStyles()
applyTheme()
createRoot(document.getElementById('room')!).render(<Entrance />)
